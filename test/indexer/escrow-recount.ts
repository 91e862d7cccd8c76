import type pg from "pg";
import type { Address, Hex } from "viem";
import { escrowAbi, escrowEventsAbi } from "../../contracts/abi.ts";
import type { AccountSums } from "../../indexer/escrow-ledger.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { ACCOUNTS, type EscrowActor } from "./escrow-actor.ts";

export const lower = (address: Address) => address.toLowerCase() as Address;
const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

export const byVerdict = (record: Hex) => /[1-9a-f]/.test(record.slice(2));

export type Events = Awaited<ReturnType<typeof readEvents>>;

/** The escrows' events as the node tells them, in the chain's order. */
export const readEvents = ({ client }: TestChain, ...escrows: readonly Address[]) =>
  client.getContractEvents({ address: [...escrows], abi: escrowEventsAbi, fromBlock: 0n, strict: true });

/** What the contract itself answers for every payment that was sent: 0 none, 1 held, 2 released, 3 refunded. */
export async function readStates({ client }: TestChain, escrow: Address, { known }: EscrowActor) {
  const states = known.map(async ({ id, terms }) => {
    const args = [id] as const;
    const [status, refundableFrom] = await client.readContract({
      address: escrow,
      abi: escrowAbi,
      functionName: "payments",
      args,
    });
    return { id, terms, status, refundableFrom };
  });
  return Promise.all(states);
}

/** What the contract itself says that it owes, without those that it owes nothing. */
export async function readOwed({ client }: TestChain, escrow: Address): Promise<Readonly<Record<Address, bigint>>> {
  const owed = ACCOUNTS.map(async (account) => {
    const amount = await client.readContract({
      address: escrow,
      abi: escrowAbi,
      functionName: "owed",
      args: [account],
    });
    return [lower(account), amount] as const;
  });
  return Object.fromEntries((await Promise.all(owed)).filter(([, amount]) => amount > 0n));
}

/** An account's sums by definition, from all events; what it is owed only the contract knows. */
export function recountAccount(events: Events, account: Address): Omit<AccountSums, "owed"> {
  const is = (address: Address) => lower(address) === account;
  const holds = events.flatMap((event) => (event.eventName === "Held" && is(event.args.payer) ? [event.args] : []));
  const released = events.flatMap((event) => (event.eventName === "Released" ? [event.args] : []));
  const refunded = events.flatMap((event) => (event.eventName === "Refunded" ? [event.args] : []));
  const withdrawn = events.flatMap((event) =>
    event.eventName === "Withdrawn" && is(event.args.account) ? [event.args.amount] : [],
  );
  const over = new Set<Hex>([...released, ...refunded].map(({ id }) => id));
  const toIt = released.filter(({ receiver }) => is(receiver));
  const back = refunded.filter(({ payer }) => is(payer));
  return {
    held: sum(holds.filter(({ id }) => !over.has(id)).map(({ amount }) => amount)),
    paid: sum(holds.map(({ amount }) => amount)),
    refunds: back.length,
    refunded: sum(back.map(({ amount }) => amount)),
    releases: toIt.length,
    released: sum(toIt.map(({ amount }) => amount)),
    withdrawn: sum(withdrawn),
  };
}

/** The index's row of every account that it knows in the escrow. */
export async function readIndexed(reader: pg.Pool, escrow: Address) {
  const { rows } = await reader.query("select * from live_escrow.escrow_account where contract = $1", [escrow]);
  return rows.map((row) => ({
    account: row.account as Address,
    owed: BigInt(row.owed),
    sums: {
      held: BigInt(row.held),
      paid: BigInt(row.paid),
      refunds: row.refunds,
      refunded: BigInt(row.refunded),
      releases: row.releases,
      released: BigInt(row.released),
      withdrawn: BigInt(row.withdrawn),
    },
  }));
}

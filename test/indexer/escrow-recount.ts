import type { Address, Hex } from "viem";
import { escrowAbi, escrowEventsAbi } from "../../contracts/abi.ts";
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

/** An escrow's sums by definition, from all of its events. */
export function recountSums(events: Events): Record<"held" | "owed" | "fees" | "withdrawn", bigint> {
  const amounts = (name: "Held" | "Released" | "Refunded" | "Credited" | "Withdrawn") =>
    sum(events.flatMap((event) => (event.eventName === name ? [event.args.amount] : [])));
  const fees = sum(events.flatMap((event) => (event.eventName === "Released" ? [event.args.fee] : [])));
  const withdrawn = amounts("Withdrawn");
  const held = amounts("Held") - amounts("Released") - amounts("Refunded");
  return { held, owed: fees + amounts("Credited") - withdrawn, fees, withdrawn };
}

import fc from "fast-check";
import type { Address, ContractFunctionArgs, Hex } from "viem";
import { escrowAbi, escrowEventsAbi } from "../../contracts/abi.ts";
import { DEV_ACCOUNTS, devAccount } from "../../scripts/embedded/dev-accounts.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { FEE_RECIPIENT, type TestEscrow } from "../support/escrow/contract.ts";
import { signReceiveAuthorization } from "../support/payments/signing.ts";

export const PAYERS = DEV_ACCOUNTS.slice(0, 4);
/** Two accounts, one of which also pays, and three that only receive. */
export const MERCHANTS: readonly Address[] = [
  devAccount(0).address,
  devAccount(5).address,
  ...[1, 2, 3].map((n): Address => `0x${(0xbee000 + n).toString(16).padStart(40, "0")}`),
];
const RELAYER = devAccount(9).address;
export const STRANGER = devAccount(8).address;
const GAS = 400_000n;

type Terms = ContractFunctionArgs<typeof escrowAbi, "view", "getHash">[0];

/** A requested payment. The chain may have refused its hold. */
export interface Known {
  readonly id: Hex;
  readonly terms: Terms;
}

const action = fc.record({
  kind: fc.constantFrom("hold", "hold", "hold", "release", "release", "refund", "time out", "withdraw"),
  payer: fc.nat(PAYERS.length - 1),
  merchant: fc.nat(MERCHANTS.length - 1),
  amount: fc.constantFrom(10_000n, 10_099n, 10_100n, 1_000_000n, 23_456_789n),
  /** Selects one of the newest payments, or an account. */
  pick: fc.nat(11),
});
const block = fc.record({
  weather: fc.constantFrom("fair", "fair", "fair", "fair", "paused", "merchant blacklisted", "payer blacklisted"),
  waitSeconds: fc.constantFrom(0, 0, 0, 1_800),
  actions: fc.array(action, { minLength: 1, maxLength: 4 }),
});
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;
type Block = typeof block extends fc.Arbitrary<infer T> ? T : never;

/** Random blocks, the same in every run with this seed. Some of their transactions are refused. */
export const planBlocks = (count: number, seed: number): readonly Block[] => fc.sample(block, { numRuns: count, seed });

export type EscrowActor = Awaited<ReturnType<typeof createEscrowActor>>;

/** Sends the transactions of payers, the arbiter, and others to an escrow. */
export async function createEscrowActor(chain: TestChain, { address, arbiter }: TestEscrow) {
  const { client } = chain;
  const known: Known[] = [];
  await client.impersonateAccount({ address: arbiter });
  const at = { address, abi: escrowAbi } as const;
  const recordOf = (id: Hex): Hex => `0x${id.slice(2).split("").reverse().join("")}`;

  const hold = async (payer: number, receiver: Address, maxAmount: bigint): Promise<Hex> => {
    const signed = await signedTerms(chain, address, {
      payer,
      receiver,
      maxAmount,
      salt: BigInt(known.length) << 240n,
    });
    const args = [signed.terms, maxAmount, address, signed.signature] as const;
    known.push({ id: signed.id, terms: signed.terms });
    return client.writeContract({ ...at, functionName: "authorize", args, account: RELAYER, gas: GAS });
  };
  const release = ({ id, terms }: Known) => {
    const args = [terms, recordOf(id), "0x"] as const;
    return client.writeContract({ ...at, functionName: "release", args, account: arbiter, gas: GAS });
  };
  const refund = ({ id, terms }: Known, account: Address = arbiter) => {
    const args = [terms, recordOf(id), "0x"] as const;
    return client.writeContract({ ...at, functionName: "refund", args, account, gas: GAS });
  };
  const withdraw = (account: Address) =>
    client.writeContract({ ...at, functionName: "withdraw", args: [account], account: STRANGER, gas: GAS });

  const act = async ({ kind, payer, merchant, amount, pick }: Action): Promise<void> => {
    if (kind === "hold") return void (await hold(payer, MERCHANTS[merchant] as Address, amount));
    if (kind === "withdraw") return void (await withdraw(ACCOUNTS[pick % ACCOUNTS.length] as Address));
    const payment = known.at(-1 - pick);
    if (payment === undefined) return;
    if (kind === "release") await release(payment);
    else await refund(payment, kind === "time out" ? STRANGER : arbiter);
  };
  const play = async (blocks: readonly Block[]): Promise<void> => {
    for (const { weather, waitSeconds, actions } of blocks) {
      if (waitSeconds > 0) await chain.increaseTime(waitSeconds);
      const clear = await change(chain, weather, actions);
      await client.setAutomine(false);
      for (const one of actions) await act(one);
      await chain.mine();
      await client.setAutomine(true);
      await clear();
    }
  };
  /** Mines these transactions in one block. */
  const mine = async (...sends: readonly (() => Promise<Hex>)[]): Promise<readonly Hex[]> => {
    const hashes: Hex[] = [];
    await client.setAutomine(false);
    for (const send of sends) hashes.push(await send());
    await chain.mine();
    await client.setAutomine(true);
    return hashes;
  };
  /** Mines one hold in a separate block. */
  const mineHold = async (...terms: Parameters<typeof hold>): Promise<Known> => {
    await mine(() => hold(...terms));
    return known.at(-1) as Known;
  };
  /** Mines one hold and its release or refund. */
  const mineSale = async (end: "release" | "refund", ...terms: Parameters<typeof hold>): Promise<void> => {
    const payment = await mineHold(...terms);
    await mine(() => (end === "release" ? release(payment) : refund(payment)));
  };
  return { known, recordOf, mine, mineHold, mineSale, hold, release, refund, withdraw, play };
}

/** Every account that the escrow may owe money. */
const ACCOUNTS: readonly Address[] = [...PAYERS.map(({ address }) => address), ...MERCHANTS, FEE_RECIPIENT];

/** Makes USDC refuse transfers until the returned function is called. */
async function change(
  chain: TestChain,
  weather: Block["weather"],
  [first]: Block["actions"],
): Promise<() => Promise<void>> {
  if (weather === "fair" || first === undefined) return async () => undefined;
  if (weather === "paused") {
    await chain.pause();
    return chain.unpause;
  }
  const account = weather === "payer blacklisted" ? PAYERS[first.payer]?.address : MERCHANTS[first.merchant];
  if (account === undefined) return async () => undefined;
  await chain.blacklist(account);
  return () => chain.unblacklist(account);
}

interface Wish {
  readonly payer: number;
  readonly receiver: Address;
  readonly maxAmount: bigint;
  readonly salt: bigint;
}

async function signedTerms(
  { client, network }: TestChain,
  escrow: Address,
  wish: Wish,
): Promise<Known & { signature: Hex }> {
  const payer = devAccount(wish.payer);
  const now = Number((await client.getBlock()).timestamp);
  const terms: Terms = {
    ...{ ...wish, payer: payer.address },
    ...{ operator: escrow, token: network.usdc.address, feeReceiver: FEE_RECIPIENT, minFeeBps: 100, maxFeeBps: 100 },
    ...{ preApprovalExpiry: now + 600, authorizationExpiry: now + 86_400, refundExpiry: now + 86_401 },
  };
  const read = (functionName: "getHash" | "getPayerAgnosticHash") =>
    client.readContract({ address: escrow, abi: escrowAbi, functionName, args: [terms] });
  const [id, nonce] = await Promise.all([read("getHash"), read("getPayerAgnosticHash")]);
  const times = { validAfter: 0n, validBefore: BigInt(terms.preApprovalExpiry) };
  const message = { from: payer.address, to: escrow, value: wish.maxAmount, ...times, nonce };
  const signature = await signReceiveAuthorization(payer, network, message);
  return { id, terms, signature };
}

export const lower = (address: Address) => address.toLowerCase() as Address;
const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

export const byVerdict = (record: Hex) => /[1-9a-f]/.test(record.slice(2));

export type Events = Awaited<ReturnType<typeof readEvents>>;

/** The escrows' events from the node, in the chain's order. */
export const readEvents = ({ client }: TestChain, ...escrows: readonly Address[]) =>
  client.getContractEvents({ address: [...escrows], abi: escrowEventsAbi, fromBlock: 0n, strict: true });

/** The contract's state of every sent payment: 0 none, 1 held, 2 released, 3 refunded. */
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

/** The contract's debts by account, without zeros. */
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

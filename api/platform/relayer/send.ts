import { TransactionReceiptNotFoundError } from "viem";
import type { Hex } from "../wallet.ts";
import { broadcast } from "./broadcast.ts";
import { feesWithin } from "./fees.ts";
import { type Call, form, type Member, type Shipment } from "./form.ts";
import type { Carried } from "./members.ts";
import type { Sender } from "./sender.ts";
import { record } from "./wait-for.ts";

/** One call; of its gas, the most that it may use. A call that needs more is not sent. */
export type RelayRequest = Call & Member & Pick<Shipment, "lane">;

/** By purpose: the hash of the transaction that carries it, or why none does. */
export type Shipped = ReadonlyMap<Hex, Hex | Error>;

/** The transaction was mined and did not do what it was for. It is never sent again. */
const revertedIn = (transaction: Hex): Error =>
  new Error(`transaction ${transaction} was mined and reverted; nothing is sent a second time for its purpose`);
const takenOver = (): Error => new Error("nothing was sent: another run works on this payment now");

/** One call, simulated first; what was sent for the purpose before is not sent a second time. */
export async function send(sender: Sender, { to, data, gas: most, lane, ...member }: RelayRequest): Promise<Hex> {
  const { purpose, mostFee } = member;
  const before = await sender.carried(purpose);
  const known = before === undefined ? null : await outcomeOf(sender, before);
  if (known !== null) return hashOf(known);
  let gas: bigint | null = null;
  const attempt = async () => {
    gas ??= await gasFor(sender, { to, data, gas: most }, mostFee);
    const call = { to, data, gas };
    const shipped = await ship(sender, { lane, members: [member], callFor: () => call });
    return hashOf(shipped.get(purpose) ?? takenOver());
  };
  return sender.lines[lane]?.wait(attempt) ?? attempt();
}

/**
 * Several in one transaction. What was sent for one of them before is not sent a second time. One that was turned away
 * has a `TurnedAway` as its outcome, unless a transaction for it was lost: then it has left us before.
 * @param lost those whose transactions lost their nonces, and are in no block either
 */
export async function ship(sender: Sender, shipment: Shipment, lost: readonly Hex[] = []): Promise<Shipped> {
  const { transaction, purposes, carried, refused } = await form(sender, shipment, lost);
  if (transaction !== null) await broadcast(sender, transaction.raw);
  const outcomes = new Map<Hex, Hex | Error>();
  const open: Member[] = [];
  const unsent = (purpose: Hex): Error => {
    const reason = refused.get(purpose);
    if (reason === undefined) return takenOver();
    return lost.includes(purpose) ? new Error(reason.message) : reason;
  };
  for (const member of shipment.members) {
    const before = carried.get(member.purpose);
    const now = transaction !== null && purposes.includes(member.purpose) ? transaction.hash : unsent(member.purpose);
    const outcome = before === undefined ? now : await outcomeOf(sender, before);
    if (outcome === null) open.push(member);
    else outcomes.set(member.purpose, outcome);
  }
  if (open.length === 0) return outcomes;
  const again = await ship(
    sender,
    { ...shipment, members: open },
    open.map(({ purpose }) => purpose),
  );
  return new Map([...outcomes, ...again]);
}

function hashOf(outcome: Hex | Error): Hex {
  if (typeof outcome !== "string") throw outcome;
  return outcome;
}

/**
 * The transaction that carries a purpose, or that it was mined in vain. Null if its nonce is lost and it is in no block
 * either: a node with gaps may have missed it when its nonce was over.
 */
async function outcomeOf(sender: Sender, carried: Carried): Promise<Hex | Error | null> {
  if ("hash" in carried) return carried.hash;
  if ("reverted" in carried) return revertedIn(carried.reverted);
  for (const hash of carried.lost) {
    const receipt = await sender.client.getTransactionReceipt({ hash }).catch(notFound);
    if (receipt === null) continue;
    await record(sender, receipt);
    return receipt.status === "reverted" ? revertedIn(hash) : hash;
  }
  return null;
}

function notFound(error: unknown): null {
  if (error instanceof TransactionReceiptNotFoundError) return null;
  throw error;
}

/** Simulated as it will be mined: by this sender, at these fees. */
async function gasFor(
  { client, address, conditions }: Sender,
  { to, data, gas: most }: Call,
  mostFee: bigint | undefined,
): Promise<bigint> {
  const { market } = await conditions();
  const estimate = await client.estimateGas({ account: address, to, data, gas: most, ...feesWithin(mostFee, market) });
  const roomy = (estimate * 13n) / 10n;
  return roomy < most ? roomy : most;
}

import { HttpRequestError, isHex, TimeoutError, type TransactionReceipt, TransactionReceiptNotFoundError } from "viem";
import { withoutSecrets } from "../chain/rpc.ts";
import { keccak256 } from "../chain/typed-data.ts";
import type { Hex } from "../wallet.ts";
import { feesWithin } from "./fees.ts";
import { type Call, type Carried, form, type Member, type Shipment } from "./form.ts";
import type { Sender } from "./sender.ts";

const ALREADY_THERE = /already known|already imported|already exists|nonce too low/i;

/**
 * Sends a transaction to the node. A refusal is not a failure, because the transaction is stored, and `tend` sends it
 * again while its nonce is open. Returns false if the node did not answer at all.
 */
export async function broadcast({ client, log }: Pick<Sender, "client" | "log">, raw: Hex): Promise<boolean> {
  try {
    await client.sendRawTransaction({ serializedTransaction: raw });
    return true;
  } catch (error) {
    if (ALREADY_THERE.test(String(error))) return true;
    const facts = { err: withoutSecrets(error), hash: keccak256(raw) };
    log.warn(facts, "a transaction could not be broadcast; it will be retried");
    return !isSilence(error);
  }
}

const isSilence = (error: unknown): boolean => {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof HttpRequestError || at instanceof TimeoutError) return true;
  return false;
};

/** A chain that makes blocks on demand mines a transaction immediately. */
const AT_ONCE_MS = [3, 5, 8, 12, 20];
/** A node may have a block before it has its receipts. */
const LONGEST_PAUSE_MS = 500;

type Finder = Pick<Sender, "ledger" | "client" | "counter" | "cargo">;

/** Waits for the receipt of a transaction or of its replacement, and records it. */
export async function waitFor(
  sender: Finder & Pick<Sender, "nextBlock">,
  hash: Hex,
  timeoutMs: number,
): Promise<TransactionReceipt> {
  const deadline = performance.now() + timeoutMs;
  const pauses = [...AT_ONCE_MS];
  let hashes: readonly Hex[] = [hash];
  for (;;) {
    for (const candidate of hashes) {
      const receipt = await finalReceipt(sender, candidate);
      if (receipt !== null) return receipt;
    }
    if (performance.now() > deadline) throw new Error(`transaction ${hash} was not mined within ${timeoutMs} ms`);
    const pause = pauses.shift();
    if (pause !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      continue;
    }
    await sender.nextBlock(LONGEST_PAUSE_MS);
    hashes = await sender.ledger.hashesOf(hash);
  }
}

/** Returns the receipt and records it; null while no block known to the node has the transaction. */
export async function receiptOf(sender: Finder, hash: Hex): Promise<TransactionReceipt | null> {
  const receipt = await knownReceipt(sender, hash);
  if (receipt !== null) await record(sender, receipt);
  return receipt;
}

/**
 * Returns the receipt of a finished transaction. A failure is recorded before it is reported. A success is not awaited,
 * because the upkeep would find it as well.
 */
async function finalReceipt(sender: Finder, hash: Hex): Promise<TransactionReceipt | null> {
  const receipt = await knownReceipt(sender, hash);
  if (receipt === null) return null;
  const recorded = record(sender, receipt);
  if (isPlainSuccess(sender, receipt)) recorded.catch(() => undefined);
  else await recorded;
  return receipt;
}

const knownReceipt = ({ client }: Pick<Finder, "client">, hash: Hex): Promise<TransactionReceipt | null> =>
  client.getTransactionReceipt({ hash }).catch(() => null);

const isPlainSuccess = ({ cargo }: Pick<Finder, "cargo">, receipt: TransactionReceipt): boolean =>
  receipt.status === "success" && cargo.failedPlaces(receipt).length === 0 && cargo.servedBy(receipt) === null;

/** Records the block of a transaction and its failed calls. The first process to record it also counts it. */
async function record({ ledger, counter, cargo }: Omit<Finder, "client">, receipt: TransactionReceipt): Promise<void> {
  const { transactionHash: hash, blockNumber: block, blockHash, status, gasUsed: gas } = receipt;
  const reverted = status === "reverted";
  const unserved = { failed: cargo.failedPlaces(receipt), served: cargo.servedBy(receipt) };
  const feeWei = feeOf(receipt);
  const purposes = await ledger.mined({ hash, block, blockHash, reverted, feeWei, ...unserved });
  if (purposes === null) return;
  const { all: payments, failed } = purposes;
  counter?.relayed({ payments, failed: reverted ? payments : failed, gas, feeWei });
}

/** Returns the fee. OP-stack chains, including Base, also charge for data on their parent chain (docs.optimism.io). */
export function feeOf({
  gasUsed,
  effectiveGasPrice,
  ...more
}: TransactionReceipt & { readonly l1Fee?: unknown }): bigint {
  const { l1Fee } = more;
  return gasUsed * effectiveGasPrice + (isHex(l1Fee) ? BigInt(l1Fee) : 0n);
}

/** One call, with its gas limit. A call that needs more is not sent. */
export type RelayRequest = Call & Member & Pick<Shipment, "lane">;

/** By purpose, the hash of the transaction that carries it, or why none does. */
export type Shipped = ReadonlyMap<Hex, Hex | Error>;

/** Returns the error for a transaction that was mined without serving its purpose. It is never sent again. */
const revertedIn = (transaction: Hex): Error =>
  new Error(`transaction ${transaction} was mined and reverted; its purpose is never sent again`);
const takenOver = (): Error => new Error("nothing was sent, because another run is working on this payment");

/** Sends one call, simulated first, unless its purpose was already sent. */
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
  return sender.lines[lane]?.(attempt) ?? attempt();
}

/**
 * Sends several purposes in one transaction, except those that were already sent. A purpose that was turned away has a
 * `TurnedAway` as its outcome, unless an earlier transaction for it was lost, because that one has left us.
 * @param lost the purposes whose transactions lost their nonces and are in no block
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
 * Returns the transaction that carries a purpose, or an error if it was mined without success. Null if its nonce is
 * lost and it is in no block. A node with gaps may have missed it when its nonce was used.
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

/** Estimates by a simulation of the real transaction, with this sender and these fees. */
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

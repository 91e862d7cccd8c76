import { type Hex, type Log, padHex, parseAbi, toEventSelector } from "viem";
import { usdcEventsAbi } from "../../../contracts/abi.ts";
import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import type { Address } from "../wallet.ts";
import { createBatcher } from "./batcher.ts";
import type { FinalBlock, Finality } from "./chain.ts";
import { forReading, type NodesClient } from "./failover.ts";
import type { createLogSearch, SearchArea } from "./log-search.ts";
import { type LogFilter, type LogReader, larger, type MinedLog, smaller } from "./logs.ts";
import { AGREEING, READINGS } from "./nodes.ts";
import { type Allowance, spending } from "./pace.ts";
import { readAtBlock } from "./read-at-block.ts";
import { usdcCalls } from "./usdc.ts";
import type { Expected, Head, Settlement, View } from "./view.ts";

const [USED, TRANSFER] = usdcEventsAbi;
const [CANCELED] = parseAbi(["event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)"]);

/** The events that end an authorization's nonce (EIP-3009): its use, and its cancellation by the payer. */
const [AUTHORIZATION_USED, AUTHORIZATION_CANCELED] = [toEventSelector(USED), toEventSelector(CANCELED)];
const TRANSFERRED = toEventSelector(TRANSFER);

/** The signer and the nonce of an authorization, which together are used at most once. Both in lower case. */
export interface NonceKey {
  readonly payer: Address;
  readonly nonce: Hex;
}

const topic = (account: Address): Hex => padHex(account, { size: 32 });

const ENDS: readonly (Hex | undefined)[] = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED];

/** Returns the log that ended a nonce, if it is among these. A nonce ends only once. */
export function endIn<Mined extends Log<bigint, number, false>>(
  logs: readonly Mined[],
  { payer, nonce }: NonceKey,
): Mined | undefined {
  const from = topic(payer);
  // Compared first, because nearly all logs of many payments have another nonce.
  return logs.find(({ topics }) => topics[2] === nonce && topics[1] === from && ENDS.includes(topics[0]));
}

export const isCancellation = ({ topics }: Log): boolean => topics[0] === AUTHORIZATION_CANCELED;

/** Returns the transfer of a use, which USDC logs right after it. Null if that log is not among these. */
export function transferAfter(
  logs: readonly Log<bigint, number, false>[],
  end: Log<bigint, number, false>,
): { readonly to: Address; readonly value: bigint } | null {
  const found = logs.find(
    ({ blockHash, logIndex, address, topics }) =>
      logIndex === end.logIndex + 1 &&
      blockHash === end.blockHash &&
      address === end.address &&
      topics[0] === TRANSFERRED &&
      topics[1] === end.topics[1],
  );
  const to = found?.topics[2];
  return found === undefined || to === undefined ? null : { to: `0x${to.slice(-40)}`, value: BigInt(found.data) };
}

/** Returns a filter for the logs that end one nonce. At most one exists. */
export const endFilter = (usdc: Address, { payer, nonce }: NonceKey): LogFilter => ({
  address: usdc,
  topics: [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], topic(payer), nonce],
});

/**
 * Returns a filter for the ends of the nonces and the payers' transfers to us, in one call, because the second of two
 * calls might reach a lagging node.
 */
const settlementFilter = (usdc: Address, payments: readonly (NonceKey & { readonly payTo: Address })[]): LogFilter => ({
  address: usdc,
  topics: [
    [AUTHORIZATION_USED, AUTHORIZATION_CANCELED, TRANSFERRED],
    [...new Set(payments.map(({ payer }) => topic(payer)))],
    [...new Set(payments.flatMap(({ nonce, payTo }) => [nonce, topic(payTo)]))],
  ],
});

/**
 * The time before a payment's arrival in which its authorization may have been used, and the longest validity after it.
 */
const DAY_SECONDS = 86_400;
/** A node may lag a little behind the head that was recorded on arrival. */
const OVERLAP = 8n;
/** The newest blocks are not final, so finality is not checked for them. */
const UNSETTLED_BLOCKS = 2n;

/** USDC on one chain. */
export interface Token {
  /** Never repeats a call on its own initiative. */
  readonly client: NodesClient;
  readonly usdc: Address;
  readonly blockSeconds: number;
  readonly finality: Finality;
  readonly search: ReturnType<typeof createLogSearch>;
  /** Returns the number of blocks that one call for logs may cover. */
  readonly width: () => bigint;
}

export interface Look {
  readonly view: View;
  /** The head that the first node knew at the time. */
  readonly head: Head;
}

/**
 * Returns the chain's view of an authorization. The nonce's state comes first, in one call that also returns the block
 * it was read at. Logs are searched only for a used nonce. An irreversible result needs three answers to successive
 * requests, because nodes behind one address lag, have gaps, and may be on an abandoned branch.
 */
export async function findSettlement(token: Token, expected: Expected, allowance: Allowance): Promise<Look> {
  const seen = await readNonce(token, { expected, allowance, reading: 0 });
  const head = { number: Number(seen.number), time: seen.time };
  if (!seen.used) return { head, view: await unused(token, { expected, seen, allowance }) };
  const use = await token.search({
    key: `${expected.payer} ${expected.nonce} ${expected.payTo}`,
    filter: settlementFilter(token.usdc, [expected]),
    area: areaOf(token, expected, seen),
    read: (logs) => useIn(logs, expected),
    blockOf: ({ end }) => end.blockNumber,
    allowance,
  });
  if (use === "unfinished") throw new Error("the node reports a nonce as used but not yet which transaction used it");
  if (use === "nowhere") return { head, view: { nonce: "spent" } };
  return { head, view: await shown(token, { expected, seen, use: use.found, allowance }) };
}

interface NonceState {
  readonly used: boolean;
  /** The block at which it was read. */
  readonly number: bigint;
  readonly time: bigint;
}

interface Read {
  readonly expected: Expected;
  readonly allowance: Allowance;
  /** Counted from 0. */
  readonly reading: number;
}

/** Reads state, block, and time in one call, so that they come from one node at one block. */
function readNonce(
  { client, usdc }: Token,
  { expected: { payer, nonce }, allowance, reading }: Read,
): Promise<NonceState> {
  return spending(allowance, async () => {
    const state = usdcCalls(usdc).isUsed(payer, nonce);
    const { number, time, of } = await readAtBlock(forReading(client, reading), { calls: [state] });
    return { used: of(state), number, time };
  });
}

interface Seen {
  readonly expected: Expected;
  readonly seen: NonceState;
  readonly allowance: Allowance;
}

const UNUSED: View = { nonce: "unused" };

/**
 * Decides on an unused nonce. It is over once a final block's time has reached `validBefore` and nodes that have this
 * block still show it unused. Any of three readings in a row that shows it used refutes that. Two nodes may be on an
 * abandoned branch.
 */
async function unused(token: Token, looked: Seen): Promise<View> {
  const { expected, seen, allowance } = looked;
  const { validBefore, unknownAt } = expected;
  if (unknownAt !== undefined) return agreed(token, looked, ({ time }) => time >= unknownAt);
  if (seen.time < validBefore) return UNUSED;
  const final = await finalSince(token, allowance, ({ time }) => time >= validBefore);
  return final === null ? UNUSED : agreed(token, looked, ({ number }) => number >= final.number);
}

/** `isEnough` is true for a reading at a block late enough to count. */
async function agreed(
  token: Token,
  { expected, seen, allowance }: Seen,
  isEnough: (reading: NonceState) => boolean,
): Promise<View> {
  if (allowance.left() < READINGS - 1) return UNUSED;
  const readings = [seen];
  while (readings.length < READINGS)
    readings.push(await readNonce(token, { expected, allowance, reading: readings.length }));
  const isRefuted = readings.some(({ used }) => used);
  return !isRefuted && readings.filter(isEnough).length >= AGREEING ? { nonce: "dead", reason: "expired" } : UNUSED;
}

/**
 * Returns a known final block that is late enough. Otherwise the final block is read for the next look, because no
 * other read may come between readings that must use nodes in turn.
 */
async function finalSince(
  { finality }: Token,
  allowance: Allowance,
  isEnough: (block: FinalBlock) => boolean,
): Promise<FinalBlock | null> {
  const known = finality.known();
  if (known !== null && isEnough(known)) return known;
  await finality.confirmed(allowance);
  return null;
}

/** The log that ended a nonce, and whether the next log is the transfer that pays us. */
interface Use {
  readonly end: MinedLog;
  readonly isPaid: boolean;
}

async function shown(token: Token, { use, ...looked }: Seen & { readonly use: Use }): Promise<View> {
  const { isPaid } = use;
  const isFinal = await isConfirmed(token, looked, use);
  if (!isPaid) return isFinal ? { nonce: "dead", reason: "nonce_consumed" } : { nonce: "spent" };
  return { nonce: "paid", settlement: settlementOf(use), final: isFinal };
}

const settlementOf = ({
  end: { blockNumber, blockHash, transactionHash: transaction, logIndex },
}: Use): Settlement => ({
  transaction,
  block: Number(blockNumber),
  blockHash,
  logIndex,
});

/**
 * Whether the use is in a final block. The transaction's receipt, read right after the logs, must match, and a third
 * node must not show another block at its height.
 */
async function isConfirmed(token: Token, { expected, seen, allowance }: Seen, { end, isPaid }: Use): Promise<boolean> {
  if (seen.number - end.blockNumber < UNSETTLED_BLOCKS) return false;
  const { client } = token;
  const { blockNumber, blockHash, transactionHash: hash } = end;
  try {
    const final = await finalSince(token, allowance, ({ number }) => number >= blockNumber);
    if (final === null || allowance.left() < READINGS - 1) return false;
    const receipt = await spending(allowance, () => forReading(client, 1).getTransactionReceipt({ hash }));
    // Another contract in the same transaction may log the same topics.
    const ofToken = receipt.logs.filter(({ address }) => address === end.address);
    const again = useIn(ofToken, expected);
    if (receipt.blockHash !== blockHash || again?.end.logIndex !== end.logIndex || again.isPaid !== isPaid)
      return false;
    if (allowance.left() === 0) return false;
    allowance.spend();
    // A node that has not reached the block, or has pruned it, proves nothing.
    const third = await forReading(client, 2)
      .getBlock({ blockNumber })
      .catch(() => null);
    return third === null || third.hash === blockHash;
  } catch {
    // The settlement has been seen. Only its finality is open.
    return false;
  }
}

/** Returns the view of a payment in newly mined logs; null unless it has paid. It is never final. */
function settlementIn(logs: readonly MinedLog[], expected: Expected): View | null {
  const use = useIn(logs, expected);
  return use?.isPaid ? { nonce: "paid", settlement: settlementOf(use), final: false } : null;
}

function useIn(logs: readonly MinedLog[], expected: Expected): Use | null {
  const end = endIn(logs, expected);
  if (end === undefined) return null;
  const transfer = transferAfter(logs, end);
  return { end, isPaid: transfer?.to === expected.payTo && transfer.value === expected.value };
}

/**
 * Returns the blocks from a day before the payment's arrival until its window closed. A payment that arrived in time
 * was settled right afterwards; one that arrived too late was settled just before `validBefore`.
 */
function areaOf({ blockSeconds, width }: Token, expected: Expected, { number: head, time }: NonceState): SearchArea {
  const blocks = (seconds: bigint) => seconds / BigInt(blockSeconds);
  const within = (block: bigint) => larger(0n, smaller(block, head));
  const arrival = within(BigInt(expected.fromBlock));
  const closed = within(head + blocks(expected.validBefore - time));
  const isLate = closed < arrival;
  const begin = isLate ? closed : arrival;
  const from = within(begin - blocks(BigInt(DAY_SECONDS)));
  const to = within(closed + blocks(BigInt(DAY_SECONDS)));
  const quarter = width() / 4n;
  const start = isLate ? within(closed + quarter) : within(arrival - smaller(quarter, OVERLAP));
  return { from, to, start: smaller(start, to), first: isLate ? "down" : "up", head };
}

const LOOKS = { most: 100, underWay: 2, waitMs: 5 };
/** A node may lag a little behind the head that was recorded on arrival. */
const NEWEST_OVERLAP = 8;
/** The most blocks in this call. A payment that was just submitted is in one of the newest. */
const NEWEST_BLOCKS = 300n;

/**
 * Returns a function that looks for payments that were just submitted in the newest logs, with one call for all that
 * are requested together. It returns a payment's view if it has paid; null decides nothing, so that the payment needs
 * its own search.
 */
export function createNewestLogs(logs: LogReader, usdc: Address) {
  const look = async (payments: readonly Expected[]): Promise<readonly (View | null)[]> => {
    const from = Math.max(0, Math.min(...payments.map(({ fromBlock }) => fromBlock)) - NEWEST_OVERLAP);
    const found = await logs.newest(settlementFilter(usdc, payments), BigInt(from));
    return payments.map((expected) => settlementIn(found, expected));
  };
  const seen = createBatcher(look, LOOKS);
  return async (expected: Expected, { number }: Head): Promise<View | null> =>
    BigInt(number - expected.fromBlock + NEWEST_OVERLAP) >= smaller(NEWEST_BLOCKS, logs.width())
      ? null
      : seen(expected).catch(() => null);
}

/** Whether a transaction to this address settles payments together. */
export const isBatch = (address: Address | null): boolean =>
  address?.toLowerCase() === SETTLEMENT_BATCH.address.toLowerCase();

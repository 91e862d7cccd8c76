import { formatLog, type Log, numberToHex, type PublicClient, padHex, parseAbi, toEventSelector } from "viem";
import { usdcAbi, usdcEventsAbi } from "../../../contracts/abi.ts";
import type { Address } from "../../kernel/wallet.ts";
import type { Expected, Head } from "../../payments/scheme.ts";
import type { Settlement, View } from "../../payments/step-types.ts";

/** Providers reject wider `eth_getLogs` ranges. */
const LOG_RANGE = 9_000n;
/** How long before a payment's arrival its authorization may have been used already: a day. */
const BEFORE_ARRIVAL_SECONDS = 86_400;
/** A node may run a little behind the head that was noted on arrival. */
const OVERLAP = 64n;

/** USDC on one chain. */
export interface Token {
  readonly client: PublicClient;
  readonly usdc: Address;
  readonly blockSeconds: number;
}

/** Looks for the transfer that used an authorization, as the chain stood at `head` or later. */
export async function findSettlement(token: Token, expected: Expected, head: Head): Promise<View> {
  const { client, usdc, blockSeconds } = token;
  const find = (range: BlockRange) => findUse(token, expected, range);
  const arrival = since(expected.fromBlock, head);
  const [recent, finalBlock] = await Promise.all([
    findFirst(rangesUpTo(BigInt(head.number), arrival), find),
    client.getBlock({ blockTag: "finalized" }),
  ]);
  if (recent !== null) return shown(recent, finalBlock.number);
  const used = (blockNumber?: bigint) =>
    client.readContract({
      address: usdc,
      abi: usdcAbi,
      functionName: "authorizationState",
      args: [expected.payer, expected.nonce],
      ...(blockNumber === undefined ? {} : { blockNumber }),
    });
  if (!(await used())) {
    const over = finalBlock.timestamp >= expected.validBefore && !(await used(finalBlock.number));
    return over ? { nonce: "dead", reason: "expired" } : { nonce: "unused" };
  }
  const earlier = await findFirst(
    rangesBefore(arrival, BigInt(Math.ceil(BEFORE_ARRIVAL_SECONDS / blockSeconds))),
    find,
  );
  if (earlier !== null) return shown(earlier, finalBlock.number);
  // No log explains it. The node's logs may lag behind its state, and a missing log proves nothing.
  if (await used(finalBlock.number)) return { nonce: "spent" };
  throw new Error("the node reports a nonce as used but not yet which transaction used it");
}

/**
 * After a reorganization, or on a lagging node, the block of the payment's arrival may not exist yet; nodes reject such
 * a range.
 */
const since = (fromBlock: number, head: Head): bigint => {
  const start = BigInt(Math.min(fromBlock, head.number)) - OVERLAP;
  return start > 0n ? start : 0n;
};

type Use = { readonly paid: Settlement } | { readonly paid: null; readonly block: bigint };

function shown(use: Use, finalBlock: bigint): View {
  if (use.paid !== null) return { nonce: "paid", settlement: use.paid, final: BigInt(use.paid.block) <= finalBlock };
  return use.block <= finalBlock ? { nonce: "dead", reason: "burnt" } : { nonce: "spent" };
}

interface BlockRange {
  readonly from: bigint;
  readonly to: bigint | "latest";
}

/**
 * Ranges that providers accept, oldest first. The last has no end, because the head it was computed from may be half a
 * second old.
 */
function rangesUpTo(head: bigint, from: bigint): BlockRange[] {
  const ranges: BlockRange[] = [];
  let start = from;
  for (; start + LOG_RANGE <= head; start += LOG_RANGE) ranges.push({ from: start, to: start + LOG_RANGE - 1n });
  return [...ranges, { from: start, to: "latest" }];
}

async function findFirst(
  ranges: readonly BlockRange[],
  find: (range: BlockRange) => Promise<Use | null>,
): Promise<Use | null> {
  for (const range of ranges) {
    const use = await find(range);
    if (use !== null) return use;
  }
  return null;
}

/** The nonce may have been used before the payment arrived: a day back, newest range first. */
function rangesBefore(newest: bigint, reach: bigint): BlockRange[] {
  const oldest = newest > reach ? newest - reach : 0n;
  const ranges: BlockRange[] = [];
  for (let to = newest; to > oldest; to -= LOG_RANGE) {
    const from = to - LOG_RANGE + 1n;
    ranges.push({ from: from > oldest ? from : oldest, to });
  }
  return ranges;
}

/**
 * What a range shows of (payer, nonce): its use, and whether the very next log is the Transfer that pays us, or its
 * cancellation.
 */
async function findUse(token: Token, expected: Expected, range: BlockRange): Promise<Use | null> {
  const { client, usdc: address } = token;
  const { payer, payTo, value } = expected;
  const [ended, transfers] = await Promise.all([
    endOf(token, expected, range),
    client.getLogs({
      address,
      event: TRANSFER,
      args: { from: payer, to: payTo },
      fromBlock: range.from,
      toBlock: range.to,
    }),
  ]);
  if (ended === undefined) return null;
  const { blockHash, blockNumber, logIndex, transactionHash } = ended;
  const paid = transfers.some(
    (log) => log.blockHash === blockHash && log.logIndex === logIndex + 1 && log.args.value === value,
  );
  if (!paid) return { paid: null, block: blockNumber };
  return { paid: { transaction: transactionHash, block: Number(blockNumber), blockHash, logIndex } };
}

/** The AuthorizationUsed or AuthorizationCanceled log of (payer, nonce): a nonce ends only once. */
async function endOf({ client, usdc: address }: Token, { payer, nonce }: Expected, { from, to }: BlockRange) {
  const topics = [ENDS, padHex(payer, { size: 32 }), nonce];
  const toBlock = typeof to === "bigint" ? numberToHex(to) : to;
  const params = [{ address, topics, fromBlock: numberToHex(from), toBlock }] as const;
  const [log] = await client.request({ method: "eth_getLogs", params: params as never });
  return log && (formatLog(log) as Log<bigint, number, false>);
}

const [AUTHORIZATION_USED, TRANSFER] = usdcEventsAbi;
const [AUTHORIZATION_CANCELED] = parseAbi([
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
]);
const ENDS = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED].map(toEventSelector);

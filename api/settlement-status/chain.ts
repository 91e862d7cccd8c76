import { type Hex, type PublicClient, TransactionReceiptNotFoundError } from "viem";
import { usdcAbi } from "../../contracts/abi.ts";
import { endFilter, endIn, isCancellation, transferAfter } from "../platform/chain/authorizations.ts";
import { createRecent } from "../platform/chain/batcher.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import { forReading, type NodesClient } from "../platform/chain/failover.ts";
import { createLogSearch, type SearchArea } from "../platform/chain/log-search.ts";
import { larger, smaller } from "../platform/chain/logs.ts";
import { firstShown, type HashedBlock } from "../platform/chain/nodes.ts";
import { createAllowance, paced } from "../platform/chain/pace.ts";
import { readAtBlock } from "../platform/chain/read-at-block.ts";
import { discreet } from "../platform/chain/rpc.ts";
import { usdcCalls } from "../platform/chain/usdc.ts";
import type { NetworkFacts } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import type { AuthorizationReader, NonceEnd, NonceName, NonceReading, Period, Searched } from "./reading.ts";

/** The limits of a batch. Each nonce takes about 10,000 gas, and nodes allow 50 million per call. */
const STATES = { most: 500, everyMs: 1_000, mostWaiting: 2_000 };
/** The age up to which a state is reused, about one block. */
const STATE_KEPT_MS = 2_000;
/** The maximum calls per search. */
const LOG_CALLS = 7;
/** The number of nodes that search the likeliest blocks. */
const NODES = 3;
const DAY_SECONDS = 86_400n;
/** The newest blocks are searched first, in a small range. */
const FIRST_BLOCKS = 800n;
/** A margin for the drift between block times and numbers, which grows when the chain halts. */
const MARGIN_BLOCKS = 2_000n;
/** The maximum guesses of the block number for a time. */
const MOST_GUESSES = 4;

type Source = Pick<ChainReader, "client" | "logs" | "finality" | "verifyContractSignature" | "isDeployed">;

/** Reads EIP-3009 authorizations of one chain's USDC, no matter who signed them. */
export function createAuthorizationReader(chain: Source, { usdc, blockSeconds }: NetworkFacts): AuthorizationReader {
  const { client, logs, finality } = chain;
  const recent = createRecent<NonceReading>(STATE_KEPT_MS);
  const readStates = paced(async (asked: readonly AskedState[]) => {
    const byNode = Map.groupBy(asked, ({ reading }) => forReading(client, reading));
    const readings = new Map<AskedState, NonceReading>();
    const read = async (node: PublicClient, theirs: readonly AskedState[]) => {
      const states = await statesOf(node, usdc.address, theirs);
      for (const [key, state] of states) void recent(key, async () => state);
      for (const one of theirs) readings.set(one, states.get(keyOf(one)) as NonceReading);
    };
    await Promise.all([...byNode].map(([node, theirs]) => read(node, theirs)));
    return asked.flatMap((one) => readings.get(one) ?? []);
  }, STATES);
  const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
  const search = createLogSearch({ logs, blockSeconds, pause });
  return {
    // A recent state is shared, but requests do not wait for each other's place in the queue, which may never come up.
    state: discreet((name, asker) => recent.known(keyOf(name)) ?? readStates({ ...name, reading: 0 }, asker)),
    stateAgain: discreet((name, asker, reading = 0) => readStates({ ...name, reading }, asker)),
    final: discreet(async () => {
      const final = await finality.confirmed();
      return final && { number: Number(final.number), hash: final.hash, time: final.time };
    }),
    endIn: discreet((transaction, name, reading = 0) => endOf(client, usdc.address, { transaction, name, reading })),
    search: discreet(async (name, period): Promise<Searched> => {
      const key = { payer: name.from, nonce: name.nonce };
      const found = await search({
        key: `${keyOf(name)} ${period.after} ${period.before}`,
        filter: endFilter(usdc.address, key),
        area: areaOf(period, BigInt(blockSeconds), logs.width()),
        read: (mined) => endIn(mined, key) ?? null,
        blockOf: ({ blockNumber }) => blockNumber,
        allowance: createAllowance(LOG_CALLS),
        nodes: NODES,
      });
      return typeof found === "string" ? found : { transaction: found.found.transactionHash };
    }),
    blockSince: discreet((time, final, reading = 0) =>
      blockSince(forReading(client, reading), { time, final, blockSeconds: BigInt(blockSeconds) }),
    ),
    usedBy: discreet(({ from, nonce }, block, reading = 0) =>
      forReading(client, reading).readContract({
        address: usdc.address,
        abi: usdcAbi,
        functionName: "authorizationState",
        args: [from, nonce],
        blockNumber: BigInt(block),
      }),
    ),
    hashAt: discreet(
      async (number, reading = 0) => (await forReading(client, reading).getBlock({ blockNumber: BigInt(number) })).hash,
    ),
    verifyContractSignature: chain.verifyContractSignature,
    isDeployed: chain.isDeployed,
  };
}

interface AskedState extends NonceName {
  readonly reading: number;
}

const keyOf = ({ from, nonce }: NonceName): string => `${from} ${nonce}`;

/** Reads each distinct nonce once, all from one node at one block. Returns the states by key. */
async function statesOf(
  client: PublicClient,
  usdc: Address,
  names: readonly NonceName[],
): Promise<ReadonlyMap<string, NonceReading>> {
  const { isUsed } = usdcCalls(usdc);
  const calls = new Map(names.map((name) => [keyOf(name), isUsed(name.from, name.nonce)]));
  const { number, time, of } = await readAtBlock(client, { calls: [...calls.values()] });
  const at = { number: Number(number), time };
  return new Map([...calls].map(([key, call]) => [key, { used: of(call), at }]));
}

interface Ended {
  readonly transaction: Hex;
  readonly name: NonceName;
  readonly reading: number;
}

/** Reads the end of a nonce from the transaction's receipt. */
async function endOf(
  client: NodesClient,
  usdc: Address,
  { transaction, name, reading }: Ended,
): Promise<NonceEnd | null> {
  const receipt = await forReading(client, reading)
    .getTransactionReceipt({ hash: transaction })
    .catch((error: unknown) => {
      if (error instanceof TransactionReceiptNotFoundError) return null;
      throw error;
    });
  if (receipt === null) return null;
  // Another contract in the same transaction may emit the same events.
  const ofToken = receipt.logs.filter(({ address }) => address.toLowerCase() === usdc);
  const end = endIn(ofToken, { payer: name.from, nonce: name.nonce });
  if (end === undefined) return null;
  const transfer = transferAfter(ofToken, end);
  // A use without its transfer is an incomplete receipt.
  if (transfer === null && !isCancellation(end)) return null;
  // The block may come from a different node than the receipt.
  const block = await firstShown((more) => blockOf(forReading(client, reading + more), receipt.blockHash));
  return block === null ? null : { transaction: receipt.transactionHash, block, transfer };
}

async function blockOf(client: PublicClient, blockHash: Hex): Promise<HashedBlock> {
  const { number, hash, timestamp } = await client.getBlock({ blockHash });
  return { number: Number(number), hash, time: timestamp };
}

interface Since {
  readonly time: bigint;
  /** A final block at or after `time`. */
  readonly final: HashedBlock;
  readonly blockSeconds: bigint;
}

/** Finds the first block at or after a time if blocks are regular, else a later one, which is also valid. */
async function blockSince(client: PublicClient, { time, final, blockSeconds }: Since): Promise<HashedBlock> {
  let found = final;
  let before = -1n;
  let guess = BigInt(final.number) - (final.time - time) / blockSeconds;
  for (let guesses = 0; guesses < MOST_GUESSES && before + 1n < BigInt(found.number); guesses++) {
    const blockNumber = larger(before + 1n, smaller(guess, BigInt(found.number) - 1n));
    const { hash, timestamp } = await client.getBlock({ blockNumber });
    if (timestamp < time) before = blockNumber;
    else found = { number: Number(blockNumber), hash, time: timestamp };
    const blocks = (time - timestamp) / blockSeconds;
    guess = blockNumber + (blocks > 0n ? blocks : blocks - 1n);
  }
  return found;
}

/**
 * Returns the blocks of the last day of the period, which ends at the newest block or at `validBefore`. A nonce is usually
 * used soon before `validBefore`, and never after it.
 */
function areaOf({ after, before, seen }: Period, blockSeconds: bigint, width: bigint): SearchArea {
  const head = BigInt(seen.number);
  const within = (block: bigint) => larger(0n, smaller(block, head));
  const blockAt = (time: bigint) => within(head - (seen.time - time) / blockSeconds);
  const isOver = before !== null && before < seen.time;
  const last = isOver ? before : seen.time;
  const day = last - DAY_SECONDS;
  // The nonce cannot be used after `last`. An `after` beyond that is contradictory, so it is ignored.
  const first = after === null || after > last ? day : larger(after, day);
  const from = within(blockAt(first) - MARGIN_BLOCKS);
  if (!isOver)
    return { from, to: head, start: larger(from, head - smaller(width, FIRST_BLOCKS) + 1n), first: "up", head };
  const end = blockAt(last);
  return { from, to: within(end + MARGIN_BLOCKS), start: within(end + width / 8n), first: "down", head };
}

import { WrongAnswerError } from "./log-answers.ts";
import { quantity } from "./logs.ts";
import type { FetchedTransfer } from "./payments.ts";
import { FetchError, type Provider } from "./provider.ts";

/** What the fetch needs to know of a block. */
export interface Header {
  readonly block: number;
  /** Unix seconds. */
  readonly time: number;
  readonly hash: string;
  readonly parentHash: string;
}

const HASH = /^0x[0-9a-f]{64}$/;

/** @throws WrongAnswerError if that is no block */
function headerOf(answer: unknown): Header {
  const { number, timestamp, hash, parentHash } = answer as Readonly<Record<string, unknown>>;
  const [block, time] = [number, timestamp].map((told) => (typeof told === "string" ? Number(told) : Number.NaN));
  const isBlock = [block, time].every((told) => Number.isSafeInteger(told) && Number(told) >= 0);
  if (!isBlock || ![hash, parentHash].every((told) => typeof told === "string" && HASH.test(told)))
    throw new WrongAnswerError("the answer is no block");
  return { block, time, hash, parentHash } as Header;
}

export const readHeader = (provider: Provider, block: number): Promise<Header> =>
  provider.ask("eth_getBlockByNumber", [quantity(block), false], (answer) => {
    const header = headerOf(answer);
    if (header.block !== block) throw new WrongAnswerError(`asked for block ${block}, got ${header.block}`);
    return header;
  });

/** The newest block that is final on every node. */
export async function readFinal(provider: Provider): Promise<Header> {
  const found = await provider.askAll("eth_getBlockByNumber", ["finalized", false], headerOf);
  const [least] = found.toSorted((a, b) => a.block - b.block);
  return least as Header;
}

const DAY_SECONDS = 86_400;
const midnightAfter = (time: number): number => (Math.floor(time / DAY_SECONDS) + 1) * DAY_SECONDS;

/** The last block of the UTC day of `first`, or `end` if that comes earlier. */
export async function lastOfDay(provider: Provider, first: Header, end: Header): Promise<Header> {
  const midnight = midnightAfter(first.time);
  if (end.time < midnight) return end;
  let [low, high] = [first, end];
  // Blocks are about as far apart everywhere; every other guess is the middle, should they not be.
  for (let isEven = true; high.block - low.block > 1; isEven = !isEven) {
    const share = isEven ? (midnight - low.time) / (high.time - low.time) : 0.5;
    const guess = low.block + Math.floor(share * (high.block - low.block));
    const found = await readHeader(provider, Math.min(high.block - 1, Math.max(low.block + 1, guess)));
    if (found.time < midnight) low = found;
    else high = found;
  }
  return low;
}

/** Base's, always. */
export const BLOCK_SECONDS = 2;

/** The time of a transfer's block: as its log says if that can be, else as the block itself does. */
export function clockOf(provider: Provider, first: Header, last: Header) {
  const isSteady = last.time - first.time === BLOCK_SECONDS * (last.block - first.block);
  const known = new Map<number, number>();
  return ({ block, time }: FetchedTransfer): number | Promise<number> => {
    const steady = isSteady ? first.time + BLOCK_SECONDS * (block - first.block) : null;
    if (time === null ? steady !== null : time === (steady ?? time) && time >= first.time && time <= last.time)
      return time ?? (steady as number);
    return (
      known.get(block) ??
      readHeader(provider, block).then((header) => {
        known.set(block, header.time);
        return header.time;
      })
    );
  };
}

/** After so many blocks a transfer's block is looked at, too. */
const LOOKED_AT_EVERY = 2_000;

/** Looks whether transfers are in the blocks of these hashes, and now and then in the one that a node has there. */
export function hashesOf(provider: Provider, [first, last]: readonly [Header, Header]) {
  const known = new Map([first, last].map(({ block, hash }) => [block, hash]));
  let looked = first.block;
  /** @throws FetchError if one is not. */
  return async (transfers: readonly FetchedTransfer[]): Promise<void> => {
    const newest = transfers.at(-1)?.block ?? looked;
    if (newest - looked >= LOOKED_AT_EVERY) {
      known.set(newest, (await readHeader(provider, newest)).hash);
      looked = newest;
    }
    const other = transfers.find(({ block, blockHash }) => (known.get(block) ?? blockHash) !== blockHash);
    if (other !== undefined) throw new FetchError(`Block ${other.block} is final, but has two hashes`);
  };
}

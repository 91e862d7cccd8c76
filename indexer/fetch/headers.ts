import { WrongAnswerError } from "./log-answers.ts";
import { quantity } from "./logs.ts";
import type { FetchedTransfer } from "./payments.ts";
import { FetchError, type Provider } from "./provider.ts";

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
  const [block, time] = [number, timestamp].map((value) => (typeof value === "string" ? Number(value) : Number.NaN));
  const isBlock = [block, time].every((value) => Number.isSafeInteger(value) && Number(value) >= 0);
  if (!isBlock || ![hash, parentHash].every((value) => typeof value === "string" && HASH.test(value)))
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
  return found.toSorted((a, b) => a.block - b.block)[0] as Header;
}

const DAY_SECONDS = 86_400;

/** The last block of the UTC day of `first`, or `end` if that comes earlier. */
export async function lastOfDay(provider: Provider, first: Header, end: Header): Promise<Header> {
  const midnight = (Math.floor(first.time / DAY_SECONDS) + 1) * DAY_SECONDS;
  if (end.time < midnight) return end;
  let [low, high] = [first, end];
  while (high.block - low.block > 1) {
    // Regular blocks end the day there; the middle makes it a binary search among others.
    const regular = low.block + Math.ceil((midnight - low.time) / BLOCK_SECONDS) - 1;
    const guess = regular < high.block ? regular : (low.block + high.block) >> 1;
    const found = await readHeader(provider, Math.max(low.block + 1, guess));
    if (found.time < midnight) low = found;
    else high = found;
  }
  return low;
}

/** Seconds between blocks of Base. */
export const BLOCK_SECONDS = 2;
/** After this many blocks a transfer's block is looked at, also where its time is known. */
const LOOKED_AT_EVERY = 2_000;

/** Finds the times of transfers, and checks that they are in the blocks of the same chain as these first and last ones. */
export function openClock(provider: Provider, first: Header, last: Header) {
  const isRegular = last.time - first.time === BLOCK_SECONDS * (last.block - first.block);
  const known = new Map([first, last].map((header) => [header.block, header]));
  let looked = first.block;
  /** @throws FetchError if a block has two hashes */
  return async (transfers: readonly FetchedTransfer[]): Promise<readonly number[]> => {
    const blocks = [...new Set(transfers.map(({ log }) => log.block))];
    const newest = blocks.at(-1) ?? looked;
    const due = !isRegular ? blocks : newest - looked >= LOOKED_AT_EVERY ? [newest] : [];
    const unknown = due.filter((block) => !known.has(block));
    await Promise.all(unknown.map(async (block) => known.set(block, await readHeader(provider, block))));
    looked = due.at(-1) ?? looked;
    for (const { log } of transfers)
      if ((known.get(log.block)?.hash ?? log.blockHash) !== log.blockHash)
        throw new FetchError(`Block ${log.block} is final, but has two hashes`);
    return transfers.map(
      ({ log }) => known.get(log.block)?.time ?? first.time + BLOCK_SECONDS * (log.block - first.block),
    );
  };
}

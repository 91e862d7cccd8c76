import { quantity } from "./logs.ts";
import type { Provider } from "./provider.ts";

/** What the fetch needs to know of a block. */
export interface Header {
  readonly block: number;
  /** Unix seconds. */
  readonly time: number;
  readonly hash: string;
  readonly parentHash: string;
}

interface RawBlock {
  readonly number: string;
  readonly timestamp: string;
  readonly hash: string;
  readonly parentHash: string;
}

const headerOf = ({ number, timestamp, hash, parentHash }: RawBlock): Header => ({
  ...{ block: Number(number), time: Number(timestamp), hash, parentHash },
});

export async function readHeader(provider: Provider, block: number): Promise<Header> {
  const isOther = ({ number }: RawBlock) =>
    Number(number) === block ? null : `asked for block ${block}, got ${Number(number)}`;
  return headerOf(await provider.ask<RawBlock>("eth_getBlockByNumber", [quantity(block), false], isOther));
}

/** The newest block that is final on every node. */
export async function readFinal(provider: Provider): Promise<Header> {
  const found = await provider.askAll<RawBlock>("eth_getBlockByNumber", ["finalized", false]);
  const [least] = found.map(headerOf).toSorted((a, b) => a.block - b.block);
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

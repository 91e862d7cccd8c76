import { numberToHex } from "viem";
import { type Header, headerOf, type Log, WrongAnswerError } from "../../api/platform/chain/log-answers.ts";
import type { Provider } from "../../api/platform/chain/provider.ts";
import { BLOCK_SECONDS, DAY_SECONDS, LastingError } from "../ledger.ts";

export const readHeader = (provider: Provider, block: number): Promise<Header> =>
  provider.ask("eth_getBlockByNumber", [numberToHex(block), false], (answer) => {
    const header = headerOf(answer);
    if (header.block !== block) throw new WrongAnswerError(`asked for block ${block}, got ${header.block}`);
    return header;
  });

/** Returns the last block of the UTC day of `first`, or `end` if that is earlier. */
export async function lastOfDay(provider: Provider, first: Header, end: Header): Promise<Header> {
  const midnight = (Math.floor(first.time / DAY_SECONDS) + 1) * DAY_SECONDS;
  if (end.time < midnight) return end;
  let [low, high] = [first, end];
  while (high.block - low.block > 1) {
    // The end of the day if blocks are regular, else the middle, for a binary search.
    const regular = low.block + Math.ceil((midnight - low.time) / BLOCK_SECONDS) - 1;
    const guess = regular < high.block ? regular : (low.block + high.block) >> 1;
    const found = await readHeader(provider, Math.max(low.block + 1, guess));
    if (found.time < midnight) low = found;
    else high = found;
  }
  return low;
}

/** A block is read at least this often, even if its time is known. */
const READ_EVERY = 2_000;

/** Returns the times of transfers, and checks that they are on the same chain as these first and last blocks. */
export function openClock(provider: Provider, first: Header, last: Header) {
  const isRegular = last.time - first.time === BLOCK_SECONDS * (last.block - first.block);
  const known = new Map([first, last].map((header) => [header.block, header]));
  let read = first.block;
  /** @throws LastingError if a block has two hashes */
  return async (transfers: readonly Log[]): Promise<readonly number[]> => {
    const blocks = [...new Set(transfers.map(({ block }) => block))];
    const newest = blocks.at(-1) ?? read;
    const due = !isRegular ? blocks : newest - read >= READ_EVERY ? [newest] : [];
    const unknown = due.filter((block) => !known.has(block));
    await Promise.all(unknown.map(async (block) => known.set(block, await readHeader(provider, block))));
    read = due.at(-1) ?? read;
    return transfers.map(({ block, blockHash }) => {
      const header = known.get(block);
      if (header !== undefined && header.hash !== blockHash)
        throw new LastingError(`Block ${block} is final, but has two hashes`);
      return header?.time ?? first.time + BLOCK_SECONDS * (block - first.block);
    });
  };
}

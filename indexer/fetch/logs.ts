import type { LogFilter } from "../../api/platform/chain/log-answers.ts";
import { askLogs, type Blocks, type Log } from "../../api/platform/chain/log-answers.ts";
import { type Provider, TooMuchError } from "../../api/platform/chain/provider.ts";

const WANTED_LOGS = 8_000;
const FIRST_BLOCKS = 500;
const MOST_BLOCKS = 10_000;
/** The factor by which the range grows after a response, until a node refuses. It is larger after an empty response. */
const GROWTH = { some: 1.25, none: 4 };
/** The number of empty responses after which a range counts as empty. */
const EMPTY_ANSWERS = 3;

/** Returns the width of the next request and its limit, in blocks, shared by all requests of a run. */
export const startWidth = () => ({ blocks: FIRST_BLOCKS, most: MOST_BLOCKS });

export interface Reading {
  readonly provider: Provider;
  readonly width: ReturnType<typeof startWidth>;
  /** The last final block. A log up to it shows that a node has the earlier blocks. */
  readonly known: number;
}

/**
 * Yields all logs of these blocks, in the order of the chain, in batches of whole blocks. A lagging node does not leave a
 * gap, because its response counts only up to its last block with a log. If no log follows, several responses must agree.
 */
export async function* readLogs(
  reading: Reading,
  filter: LogFilter,
  { first, last }: Blocks,
): AsyncGenerator<readonly Log[]> {
  for (let next = first; next <= last; ) {
    const { logs, end } = await readSome(reading, filter, next);
    yield logs.filter(({ block }) => block <= last);
    next = end + 1;
  }
}

async function readSome({ provider, width, known }: Reading, filter: LogFilter, first: number) {
  for (let [empties, isRefused] = [0, false]; ; ) {
    // Request blocks beyond the day too, because a later log shows that the node has the day's blocks.
    const asked = { first, last: Math.min(known, first + width.blocks - 1) };
    const isWidest = isRefused || asked.last === known || width.blocks === width.most;
    const count = asked.last - first + 1;
    try {
      const logs = await askLogs(provider, filter, asked);
      const last = logs.at(-1);
      const grown = Math.ceil(width.blocks * (last === undefined ? GROWTH.none : GROWTH.some));
      const wanted = Math.floor((WANTED_LOGS * count) / Math.max(1, logs.length));
      width.blocks = Math.max(1, Math.min(grown, wanted, width.most));
      if (last !== undefined) return { logs, end: last.block };
      if (isWidest) empties += 1;
      if (empties === EMPTY_ANSWERS) return { logs, end: asked.last };
    } catch (error) {
      if (!(error instanceof TooMuchError) || count === 1) throw error;
      isRefused = true;
      width.blocks = Math.min(width.blocks, count >> 1);
      if (error.isRange) width.most = Math.min(width.most, count >> 1);
    }
  }
}

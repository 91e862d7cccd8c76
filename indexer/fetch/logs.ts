import { type Blocks, inOrder, type Log, type LogFilter, readLogAnswer } from "./log-answers.ts";
import { type Provider, TooMuchError } from "./provider.ts";

/** How many logs an answer should have; a provider's size limit halves it. */
const WANTED_LOGS = 8_000;
const FIRST_BLOCKS = 500;
const MOST_BLOCKS = 10_000;
/** An empty range counts as empty after so many answers that say so. */
const EMPTY_ANSWERS = 3;
/** Blocks without any log are asked for again if that had a chance of less than e to the minus this. */
const SURPRISE = 14;
/** So many logs on average are asked for beyond the last block, so that there is probably one. */
const LIKELY = 3;

/** How many blocks providers let one ask for; shared by all who ask them. */
export interface Width {
  /** No request for more blocks than that was ever refused for its range. */
  most: number;
  wantedLogs: number;
  /** Logs a block; null before the first answer. */
  density: number | null;
}

export const startWidth = (): Width => ({ most: MOST_BLOCKS, wantedLogs: WANTED_LOGS, density: null });

export const quantity = (n: number): string => `0x${n.toString(16)}`;

type Asker = Pick<Provider, "ask">;

interface Question {
  readonly filter: LogFilter;
  readonly blocks: Blocks;
}

/** Asks for logs in one request. @throws TooMuchError */
export const ask = <T>(provider: Asker, { filter, blocks }: Question, read: (answer: unknown) => T): Promise<T> =>
  provider.ask("eth_getLogs", [{ ...filter, fromBlock: quantity(blocks.first), toBlock: quantity(blocks.last) }], read);

/** The logs of these blocks in the order of the chain, in one request. @throws TooMuchError */
export const askLogs = (provider: Asker, filter: LogFilter, blocks: Blocks): Promise<readonly Log[]> =>
  ask(provider, { filter, blocks }, (answer) => readLogAnswer(answer, filter, blocks));

/** Logs of whole blocks that follow each other. */
export interface LogBatch {
  readonly blocks: Blocks;
  readonly logs: readonly Log[];
}

interface Reading {
  readonly provider: Provider;
  readonly filter: LogFilter;
  readonly width: Width;
  /** Blocks after the last one, which show that a node had that one. */
  readonly known: number;
}

/**
 * All logs of these blocks. A node that lags, and answers with what it has, leaves no hole: its answer counts up to the
 * last block with a log, which it must have had. Where no log follows, several answers must agree.
 */
export async function* readLogs(reading: Reading, { first, last }: Blocks): AsyncGenerator<LogBatch> {
  let next = first;
  while (next <= last) {
    const batch = await readSome(reading, { first: next, last });
    next = batch.blocks.last + 1;
    yield batch;
  }
}

async function readSome(reading: Reading, { first, last }: Blocks): Promise<LogBatch> {
  const { width, known } = reading;
  for (let [empties, wide] = [0, 0]; ; ) {
    const count = Math.max(1, wide, countOf(width));
    // Beyond the last block, for a log that shows that the node had it.
    const beyond = last + Math.max(wide, Math.ceil(LIKELY / (width.density ?? LIKELY)));
    const asked = { first, last: Math.min(Math.max(last, known), beyond, first + Math.min(count, width.most) - 1) };
    const logs = await narrowing(width, asked, () => askLogs(reading.provider, reading.filter, asked));
    if (logs === null) {
      wide = 0;
      continue;
    }
    learn(width, logs.length, asked);
    const proven = logs.at(-1)?.block ?? first - 1;
    if (proven >= first) {
      const blocks = { first, last: Math.min(proven, last) };
      const inside = logs.filter(({ block }) => block <= blocks.last);
      return { blocks, logs: await withoutGaps(reading, blocks, inside) };
    }
    // Nothing: wider, until there is a log or no more can be asked for.
    const isWidest = asked.last >= Math.max(last, known) || asked.last - first + 1 >= width.most;
    wide = (asked.last - first + 1) * 4;
    empties = isWidest ? empties + 1 : 0;
    if (empties >= EMPTY_ANSWERS) return { blocks: { first, last: Math.min(asked.last, last) }, logs: [] };
  }
}

const countOf = ({ density, wantedLogs }: Width): number =>
  density === null ? FIRST_BLOCKS : Math.min(MOST_BLOCKS, Math.floor(wantedLogs / Math.max(density, 1e-9)));

function learn(width: Width, logs: number, { first, last }: Blocks): void {
  const now = logs / (last - first + 1);
  width.density = width.density === null ? now : 0.7 * width.density + 0.3 * now;
}

/** After so many blocks were refused, no more than half of them are asked for next. */
function narrow(width: Width, blocks: number, isRange: boolean): void {
  const half = Math.floor(blocks / 2);
  if (isRange) {
    width.most = Math.min(width.most, half);
    return;
  }
  // Either the provider allows fewer logs than were wanted, or there are more of them here than before.
  const isAsDense = (width.density ?? 0) * blocks >= width.wantedLogs / 2;
  if (isAsDense) width.wantedLogs = Math.max(1, width.wantedLogs / 2);
  if (countOf(width) > half) width.density = width.wantedLogs / half;
}

/** Null if the range was refused: the next one is to be smaller. */
async function narrowing<T>(width: Width, { first, last }: Blocks, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    const blocks = last - first + 1;
    if (!(error instanceof TooMuchError) || blocks === 1) throw error;
    narrow(width, blocks, error.isRange);
    return null;
  }
}

/** Asks again for blocks that are strangely empty, and takes what any answer has. */
async function withoutGaps(reading: Reading, { first, last }: Blocks, logs: readonly Log[]): Promise<readonly Log[]> {
  const longest = Math.ceil((SURPRISE * (last - first + 1)) / logs.length);
  const missed: Log[] = [];
  let before = first - 1;
  for (const block of [...new Set(logs.map(({ block }) => block))]) {
    const gap = { first: before + 1, last: block - 1 };
    before = block;
    if (gap.last - gap.first + 1 < longest) continue;
    for (let answers = 1, found = 0; answers < EMPTY_ANSWERS && found === 0; answers += 1) {
      const again = await askLogs(reading.provider, reading.filter, gap);
      found = again.length;
      missed.push(...again);
    }
  }
  return missed.length === 0 ? logs : inOrder([...logs, ...missed]);
}

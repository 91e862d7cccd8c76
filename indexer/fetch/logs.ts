import { type Blocks, inOrder, type Log, type LogFilter, readLogAnswer } from "./log-answers.ts";
import { type Provider, TooMuchError } from "./provider.ts";

/** How many logs an answer should have. */
const WANTED_LOGS = 8_000;
const FIRST_BLOCKS = 500;
const MOST_BLOCKS = 10_000;
/** After an answer, this many times as many blocks are asked for, until a node refuses; more after one without a log. */
const GROWTH = { some: 1.25, none: 4 };
/** An empty range counts as empty after this many answers without a log. */
const EMPTY_ANSWERS = 3;
/** Blocks without any log are asked for again if that had a chance of less than e to the minus this. */
const SURPRISE = 14;

/** How many blocks to ask for in one request; shared by all requests of a run. */
export interface Width {
  blocks: number;
  /** No request for more blocks than that was ever refused for its range. */
  most: number;
}

export const startWidth = (): Width => ({ blocks: FIRST_BLOCKS, most: MOST_BLOCKS });

export const quantity = (n: number): string => `0x${n.toString(16)}`;

export interface Reading {
  readonly provider: Provider;
  readonly width: Width;
  /** The last block that is known to be final: it shows that a node has the blocks before it. */
  readonly known: number;
}

/** The logs of these blocks in the order of the chain, in one request. @throws TooMuchError */
export const askLogs = (provider: Asker, filter: LogFilter, blocks: Blocks): Promise<readonly Log[]> =>
  provider.ask("eth_getLogs", paramsOf(filter, blocks), (answer) => readLogAnswer(answer, filter, blocks));

export const paramsOf = (filter: LogFilter, { first, last }: Blocks): readonly unknown[] => [
  { ...filter, fromBlock: quantity(first), toBlock: quantity(last) },
];

type Asker = Pick<Provider, "ask">;

/** Logs of whole blocks that follow each other. */
export interface LogBatch {
  readonly blocks: Blocks;
  readonly logs: readonly Log[];
}

/**
 * All logs of these blocks. A node that lags, and answers with the logs it has, leaves no hole: its answer counts up to the
 * last block with a log, which it must have had. Where no log follows, several answers must agree.
 */
export async function* readLogs(
  reading: Reading,
  filter: LogFilter,
  { first, last }: Blocks,
): AsyncGenerator<LogBatch> {
  for (let next = first; next <= last; ) {
    const batch = await readSome(reading, filter, { first: next, last });
    next = batch.blocks.last + 1;
    yield batch;
  }
}

async function readSome({ provider, width, known }: Reading, filter: LogFilter, { first, last }: Blocks) {
  for (let [empties, isRefused] = [0, false]; ; ) {
    // Beyond the last block, too, where a log shows that the node had that one.
    const asked = { first, last: Math.min(known, first + width.blocks - 1) };
    const isWidest = isRefused || asked.last === known || width.blocks === width.most;
    const logs = await askLogs(provider, filter, asked).catch((error) => narrow(width, asked, error));
    isRefused ||= logs === null;
    if (logs === null) continue;
    learn(width, asked, logs.length);
    const blocks = { first, last: Math.min(logs.at(-1)?.block ?? asked.last, last) };
    const inside = logs.filter(({ block }) => block <= last);
    if (logs.length > 0) return { blocks, logs: await withoutGaps(provider, filter, { blocks, logs: inside }) };
    if (isWidest) empties += 1;
    if (empties === EMPTY_ANSWERS) return { blocks, logs };
  }
}

function learn(width: Width, { first, last }: Blocks, logs: number): void {
  const wanted = Math.floor((WANTED_LOGS * (last - first + 1)) / Math.max(1, logs));
  const grown = Math.ceil(width.blocks * (logs === 0 ? GROWTH.none : GROWTH.some));
  width.blocks = Math.max(1, Math.min(grown, logs === 0 ? grown : wanted, width.most));
}

/** After these blocks were refused, no more than half of them are asked for. @throws other errors */
function narrow(width: Width, { first, last }: Blocks, error: unknown): null {
  const half = (last - first + 1) >> 1;
  if (!(error instanceof TooMuchError) || half === 0) throw error;
  if (error.isRange) width.most = Math.min(width.most, half);
  width.blocks = Math.min(width.blocks, half);
  return null;
}

/** Asks again for blocks that are strangely empty, and takes the logs of any answer. */
async function withoutGaps(
  provider: Provider,
  filter: LogFilter,
  { blocks: { first, last }, logs }: LogBatch,
): Promise<readonly Log[]> {
  const longest = Math.ceil((SURPRISE * (last - first + 1)) / logs.length);
  const missed: Log[] = [];
  let next = first;
  for (const block of new Set(logs.map(({ block }) => block))) {
    const gap = { first: next, last: block - 1 };
    next = block + 1;
    if (block - gap.first < longest) continue;
    for (let answers = 1, found = 0; answers < EMPTY_ANSWERS && found === 0; answers += 1) {
      const again = await askLogs(provider, filter, gap);
      missed.push(...again);
      found = again.length;
    }
  }
  return inOrder([...logs, ...missed]);
}

import {
  askLogs,
  type Blocks,
  type Log,
  type LogFilter,
  paramsOf,
  placeOf,
  readLogAnswer,
  TRANSFER_TOPIC,
  USED_TOPIC,
  WrongAnswerError,
} from "../../api/platform/chain/log-answers.ts";
import { type Provider, TooMuchError } from "../../api/platform/chain/provider.ts";
import { USDC } from "../ledger.ts";

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
async function* readLogs(reading: Reading, filter: LogFilter, { first, last }: Blocks): AsyncGenerator<readonly Log[]> {
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

/** The maximum payers that providers accept in one filter. More payers take several requests. */
const MOST_PAYERS = 1_000;

/** Returns the log after this `AuthorizationUsed` if it is the payment's transfer. USDC emits both together. */
function transferAfter(used: Log, byPlace: ReadonlyMap<number, Log>): Log | undefined {
  const next = byPlace.get(placeOf(used) + 1);
  const isTransfer = next?.topics[0] === TRANSFER_TOPIC && next.topics[1] === used.topics[1];
  return isTransfer && next.blockHash === used.blockHash && next.transaction === used.transaction ? next : undefined;
}

/** Yields the transfers of EIP-3009 payments: reads `AuthorizationUsed` first, then the transfers of those payers. */
export async function* readPayments(reading: Reading, blocks: Blocks): AsyncGenerator<readonly Log[]> {
  for await (const used of readLogs(reading, { address: USDC, topics: [USED_TOPIC] }, blocks))
    yield await transfersOf(reading.provider, used);
}

async function transfersOf(provider: Provider, used: readonly Log[]): Promise<readonly Log[]> {
  const [first, last] = [used[0]?.block, used.at(-1)?.block];
  if (first === undefined || last === undefined) return [];
  const payers = [...new Set(used.map(({ topics }) => topics[1] ?? ""))];
  const filter: LogFilter = { address: USDC, topics: [TRANSFER_TOPIC, payers] };
  const read = (answer: unknown) => {
    const logs = readLogAnswer(answer, filter, { first, last });
    const byPlace = new Map(logs.map((log) => [placeOf(log), log]));
    return used.map((log) => {
      const transfer = transferAfter(log, byPlace);
      if (transfer !== undefined) return transfer;
      throw new WrongAnswerError(`no transfer for an authorization in block ${log.block}`);
    });
  };
  try {
    if (payers.length > MOST_PAYERS) throw new TooMuchError(`${payers.length} payers`, false);
    return await provider.ask("eth_getLogs", paramsOf(filter, { first, last }), read);
  } catch (error) {
    if (!(error instanceof TooMuchError) || used.length === 1) throw error;
    const half = used.length >> 1;
    const parts = [used.slice(0, half), used.slice(half)].map((part) => transfersOf(provider, part));
    return (await Promise.all(parts)).flat();
  }
}

const addressIn = (topic = ""): string => `0x${topic.slice(26)}`;

export const lineOf = ({ block, transaction, index, topics, data }: Log, time: number): string =>
  `${block},${time},${transaction},${index},${addressIn(topics[1])},${addressIn(topics[2])},${BigInt(data)},true\n`;

import { TRANSFER_TOPIC } from "../ledger.ts";

// What nodes answer to `eth_getLogs`. Whether it is true nobody can see here, but that it is an answer to the question.

/** A log as it was asked for. Addresses and hashes are in lower case. */
export interface Log {
  readonly block: number;
  /** In its block. */
  readonly index: number;
  /** Unix seconds; null if the node did not say. */
  readonly time: number | null;
  readonly blockHash: string;
  readonly transaction: string;
  readonly topics: readonly string[];
  readonly data: string;
}

export interface LogFilter {
  readonly address: string;
  readonly topics: readonly (string | readonly string[] | null)[];
}

export interface Blocks {
  readonly first: number;
  readonly last: number;
}

/** An answer that cannot be one to its question: another node is asked. */
export class WrongAnswerError extends Error {
  override readonly name = "WrongAnswerError";
}

/** What JSON may hold in place of a log. */
type Told = Readonly<Record<string, unknown>>;

const WORD = /^0x[0-9a-f]{64}$/;
/** What 63 bits can hold: more than there is of USDC. */
const AMOUNT = /^0x0{48}[0-7][0-9a-f]{15}$/;
/** Of `Transfer` and of `AuthorizationUsed`. */
const TOPICS = 3;
/** As in ../history/source.ts. */
const MOST_INDEX = 2 ** 20 - 1;
const MOST_TIME = 2 ** 34;

const quantityOf = (told: unknown): number => (typeof told === "string" ? Number(told) : Number.NaN);
/** A place in the chain, as a number: logs are in the order of their places. */
export const placeOf = ({ block, index }: Pick<Log, "block" | "index">): number => block * (MOST_INDEX + 1) + index;

const isWithin = (value: number, low: number, high: number): boolean =>
  Number.isInteger(value) && value >= low && value <= high;

const isWord = (told: unknown): told is string => typeof told === "string" && WORD.test(told);

/** Whether an answer's topics are among those asked for, and what they are not asked for is a word. */
function areAsked(topics: unknown, wanted: Wanted): topics is readonly string[] {
  if (!Array.isArray(topics) || topics.length !== TOPICS) return false;
  for (let place = 0; place < topics.length; place += 1)
    if (!(wanted[place]?.has(topics[place]) ?? isWord(topics[place]))) return false;
  return true;
}

/** For each topic that is asked for, those that will do; null if all will. */
type Wanted = readonly (ReadonlySet<unknown> | null)[];

interface Question extends Blocks {
  /** In lower case. */
  readonly address: string;
  readonly wanted: Wanted;
}

const isKnown = (told: unknown, known: string | undefined): told is string => known !== undefined && told === known;

/** @param known another log: what is the same there is a word */
function logOf(told: Told | null, known: Log | undefined, { first, last, address, wanted }: Question): Log {
  const block = quantityOf(told?.blockNumber);
  if (told === null || !isWithin(block, first, last))
    throw new WrongAnswerError(`a log is outside of blocks ${first} to ${last}`);
  const { blockHash, transactionHash: transaction, topics, data } = told;
  if (!areAsked(topics, wanted) || (told.address !== address && String(told.address).toLowerCase() !== address))
    throw new WrongAnswerError(`a log of block ${block} was not asked for`);
  const index = quantityOf(told.logIndex);
  if (
    !isWithin(index, 0, MOST_INDEX) ||
    !(isKnown(blockHash, known?.blockHash) || isWord(blockHash)) ||
    !(isKnown(transaction, known?.transaction) || isWord(transaction)) ||
    told.removed === true
  )
    throw new WrongAnswerError(`a log of block ${block} has no place in it`);
  if (typeof data !== "string" || (topics[0] === TRANSFER_TOPIC && !AMOUNT.test(data)))
    throw new WrongAnswerError(`a log of block ${block} has no amount`);
  const time = told.blockTimestamp == null ? null : quantityOf(told.blockTimestamp);
  if (time !== null && !isWithin(time, 0, MOST_TIME)) throw new WrongAnswerError(`block ${block} has no time`);
  return { block, index, time, blockHash, transaction, topics, data };
}

const compare = (a: Log, b: Log): number => a.block - b.block || a.index - b.index;
/** Nodes answer in order as a rule. */
export const inOrder = (logs: readonly Log[]): readonly Log[] =>
  logs.every((log, place) => place === 0 || compare(logs[place - 1] as Log, log) <= 0) ? logs : logs.toSorted(compare);

const questionOf = ({ address, topics }: LogFilter, blocks: Blocks): Question => ({
  ...blocks,
  address: address.toLowerCase(),
  wanted: topics.map((topic) => (topic === null ? null : new Set([topic].flat()))),
});

/**
 * The logs of an answer to this question, in the order of the chain.
 * @throws WrongAnswerError if it has others, one of them twice, or two hashes for a block
 */
export function readLogAnswer(answer: unknown, filter: LogFilter, blocks: Blocks): readonly Log[] {
  if (!Array.isArray(answer)) throw new WrongAnswerError("the answer is no list of logs");
  const question = questionOf(filter, blocks);
  const read: Log[] = [];
  for (const told of answer) read.push(logOf(told, read.at(-1), question));
  const logs = inOrder(read);
  logs.forEach((log, place) => {
    const before = logs[place - 1];
    if (before?.block !== log.block) return;
    if (before.index === log.index) throw new WrongAnswerError(`a log of block ${log.block} is there twice`);
    if (before.blockHash !== log.blockHash) throw new WrongAnswerError(`block ${log.block} has two hashes`);
  });
  return logs;
}

/**
 * Of an answer to this question, the logs right after these, in their order; undefined where there is none. No others
 * need be as they should.
 * @throws WrongAnswerError if one is not, or is there twice
 */
export function readNextLogs(answer: unknown, filter: LogFilter, before: readonly Log[]): readonly (Log | undefined)[] {
  if (!Array.isArray(answer)) throw new WrongAnswerError("the answer is no list of logs");
  const question = questionOf(filter, { first: before[0]?.block ?? 0, last: before.at(-1)?.block ?? 0 });
  const orders = new Map(before.map((log, order) => [placeOf(log) + 1, order]));
  const found = new Array<Log | undefined>(before.length);
  for (const told of answer as readonly (Told | null)[]) {
    const order = orders.get(placeOf({ block: quantityOf(told?.blockNumber), index: quantityOf(told?.logIndex) }));
    if (order === undefined) continue;
    const log = logOf(told, before[order], question);
    if (found[order] !== undefined) throw new WrongAnswerError(`a log of block ${log.block} is there twice`);
    found[order] = log;
  }
  return found;
}

import { numberToHex, toEventSelector } from "viem";
import type { Provider } from "./provider.ts";

// USDC's logs. These checks cannot tell whether an answer is true, only whether it fits the request.

export const TRANSFER_TOPIC = toEventSelector("Transfer(address,address,uint256)");
export const USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");

/** A requested log. Addresses and hashes are in lower case. */
export interface Log {
  readonly block: number;
  /** The index in its block. */
  readonly index: number;
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

/** A response that cannot be right, so that another node is called. */
export class WrongAnswerError extends Error {
  override readonly name = "WrongAnswerError";
}

const WORD = /^0x[0-9a-f]{64}$/;
/** An amount of at most 63 bits, more than the supply of USDC. */
const AMOUNT = /^0x0{48}[0-7][0-9a-f]{15}$/;
/** The number of topics of `Transfer` and of `AuthorizationUsed`. */
const TOPICS = 3;
const MOST_INDEX = 2 ** 20 - 1;

const quantityOf = (value: unknown): number => (typeof value === "string" ? Number(value) : Number.NaN);
const isWithin = (value: number, low: number, high: number): boolean =>
  Number.isInteger(value) && value >= low && value <= high;
const isWord = (value: unknown): value is string => typeof value === "string" && WORD.test(value);

/** Returns a log's position on the chain as a number that sorts. */
export const placeOf = ({ block, index }: Pick<Log, "block" | "index">): number => block * (MOST_INDEX + 1) + index;

const inOrder = (logs: readonly Log[]): readonly Log[] => logs.toSorted((a, b) => placeOf(a) - placeOf(b));

interface Question extends Blocks {
  /** In lower case. */
  readonly address: string;
  /** For each topic of the filter, its accepted values; null for any. */
  readonly wanted: readonly (ReadonlySet<unknown> | null)[];
}

function logOf(answer: unknown, { first, last, address, wanted }: Question): Log {
  const log = (answer ?? {}) as Readonly<Record<string, unknown>>;
  const [block, index] = [quantityOf(log.blockNumber), quantityOf(log.logIndex)];
  if (!isWithin(block, first, last)) throw new WrongAnswerError(`a log is outside of blocks ${first} to ${last}`);
  const { blockHash, transactionHash: transaction, topics, data } = log;
  const isAsked =
    Array.isArray(topics) &&
    topics.length === TOPICS &&
    topics.every((topic, place) => wanted[place]?.has(topic) ?? isWord(topic));
  if (!isAsked || String(log.address).toLowerCase() !== address)
    throw new WrongAnswerError(`a log of block ${block} was not asked for`);
  if (!isWithin(index, 0, MOST_INDEX) || !isWord(blockHash) || !isWord(transaction) || log.removed === true)
    throw new WrongAnswerError(`a log of block ${block} has no place in it`);
  if (typeof data !== "string" || (topics[0] === TRANSFER_TOPIC && !AMOUNT.test(data)))
    throw new WrongAnswerError(`a log of block ${block} has no amount`);
  return { block, index, blockHash, transaction, topics, data };
}

/**
 * Returns the logs of a response, in the order of the chain.
 * @throws WrongAnswerError if a log does not match the filter, appears twice, or contradicts the hash of its block
 */
export function readLogAnswer(answer: unknown, { address, topics }: LogFilter, blocks: Blocks): readonly Log[] {
  if (!Array.isArray(answer)) throw new WrongAnswerError("the answer is no list of logs");
  const wanted = topics.map((topic) => (topic === null ? null : new Set([topic].flat())));
  const question = { ...blocks, address: address.toLowerCase(), wanted };
  const logs = inOrder(answer.map((log) => logOf(log, question)));
  logs.forEach((log, place) => {
    const before = logs[place - 1];
    if (before?.block !== log.block) return;
    if (before.index === log.index) throw new WrongAnswerError(`a log of block ${log.block} is there twice`);
    if (before.blockHash !== log.blockHash) throw new WrongAnswerError(`block ${log.block} has two hashes`);
  });
  return logs;
}

export interface Header {
  readonly block: number;
  /** Unix seconds. */
  readonly time: number;
  readonly hash: string;
  readonly parentHash: string;
}

/** @throws WrongAnswerError if that is not a block */
export function headerOf(answer: unknown): Header {
  const { number, timestamp, hash, parentHash } = (answer ?? {}) as Readonly<Record<string, unknown>>;
  const [block, time] = [quantityOf(number), quantityOf(timestamp)];
  if (
    ![block, time].every((value) => isWithin(value, 0, Number.MAX_SAFE_INTEGER)) ||
    !isWord(hash) ||
    !isWord(parentHash)
  )
    throw new WrongAnswerError("the answer is not a block");
  return { block, time, hash, parentHash };
}

export const paramsOf = (filter: LogFilter, { first, last }: Blocks): readonly unknown[] => [
  { ...filter, fromBlock: numberToHex(first), toBlock: numberToHex(last) },
];

/** Returns the logs of these blocks in the order of the chain, in one request. @throws TooMuchError */
export const askLogs = (provider: Pick<Provider, "ask">, filter: LogFilter, blocks: Blocks): Promise<readonly Log[]> =>
  provider.ask("eth_getLogs", paramsOf(filter, blocks), (answer) => readLogAnswer(answer, filter, blocks));

import { toEventSelector } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import { TRANSFER_TOPIC } from "../ledger.ts";
import {
  askLogs,
  type Blocks,
  blockOf,
  type LogBatch,
  type LogFilter,
  type RawLog,
  readLogs,
  type Width,
} from "./logs.ts";
import { FetchError, type Provider, TooMuchError } from "./provider.ts";

const USDC = NETWORKS[MAIN_NETWORK].usdc.address;
const USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");
/** What providers take in one filter; more payers than that are asked for in turn. */
const MOST_PAYERS = 1_000;
/** How often the transfers are asked for until they are those of the authorizations. */
const MOST_ANSWERS = 12;

/** A transfer of USDC; addresses and hashes in hexadecimal with 0x, the value in atomic units. */
export interface FetchedTransfer {
  readonly block: number;
  /** Unix seconds; null if the node did not say. */
  readonly time: number | null;
  readonly transaction: string;
  readonly logIndex: number;
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
  readonly authorised: boolean;
  readonly blockHash: string;
}

export interface TransferBatch {
  readonly blocks: Blocks;
  readonly transfers: readonly FetchedTransfer[];
}

interface Reading {
  readonly provider: Provider;
  readonly width: Width;
  readonly known: number;
}

const addressOf = (topic: string | undefined): string => `0x${(topic ?? "").slice(26)}`;
const topicOf = (log: RawLog, index: number): string => log.topics[index] ?? "";
const placeOf = (log: RawLog, after = 0): string => `${log.blockNumber} ${Number(log.logIndex) + after}`;

const transferOf = (log: RawLog, authorised: boolean): FetchedTransfer => ({
  block: blockOf(log),
  time: log.blockTimestamp === undefined || log.blockTimestamp === null ? null : Number(log.blockTimestamp),
  transaction: log.transactionHash,
  logIndex: Number(log.logIndex),
  from: addressOf(log.topics[1]),
  to: addressOf(log.topics[2]),
  value: BigInt(log.data),
  authorised,
  blockHash: log.blockHash,
});

/** Whether the first is the AuthorizationUsed of the second: USDC emits both together. */
const isOf = (used: RawLog | undefined, transfer: RawLog | undefined): boolean =>
  used !== undefined &&
  transfer !== undefined &&
  used.blockHash === transfer.blockHash &&
  used.transactionHash === transfer.transactionHash &&
  topicOf(used, 1) === topicOf(transfer, 1);

/** All transfers of these blocks. */
export async function* readAll(reading: Reading, blocks: Blocks): AsyncGenerator<TransferBatch> {
  const filter: LogFilter = { address: USDC, topics: [[TRANSFER_TOPIC, USED_TOPIC]] };
  for await (const batch of readLogs({ ...reading, filter }, blocks)) {
    const used = new Map(
      batch.logs.filter((log) => topicOf(log, 0) === USED_TOPIC).map((log) => [placeOf(log, 1), log]),
    );
    const moved = batch.logs.filter((log) => topicOf(log, 0) === TRANSFER_TOPIC);
    yield { blocks: batch.blocks, transfers: moved.map((log) => transferOf(log, isOf(used.get(placeOf(log)), log))) };
  }
}

/** The payments by EIP-3009 of these blocks: `AuthorizationUsed` first, then the transfers of those payers. */
export async function* readPayments(reading: Reading, blocks: Blocks): AsyncGenerator<TransferBatch> {
  const filter: LogFilter = { address: USDC, topics: [USED_TOPIC] };
  for await (const batch of readLogs({ ...reading, filter }, blocks)) {
    const parts = partsOf(batch);
    const found = await Promise.all(parts.map((used) => transfersOf(reading.provider, used)));
    yield { blocks: batch.blocks, transfers: found.flat() };
  }
}

/** The logs in parts of no more payers than one filter takes. */
function partsOf({ logs }: LogBatch): readonly (readonly RawLog[])[] {
  const parts: RawLog[][] = [];
  let payers = new Set<string>();
  for (const log of logs) {
    const payer = topicOf(log, 1);
    if (parts.length === 0 || (payers.size === MOST_PAYERS && !payers.has(payer))) {
      parts.push([]);
      payers = new Set();
    }
    payers.add(payer);
    parts.at(-1)?.push(log);
  }
  return parts;
}

/** Each log with the one of the others that has the next index in its block, if there is one. Both in order. */
function withNext(
  used: readonly RawLog[],
  others: readonly RawLog[],
): readonly { readonly log: RawLog; readonly transfer: RawLog | undefined }[] {
  let place = 0;
  return used.map((log) => {
    const [block, index] = [blockOf(log), Number(log.logIndex) + 1];
    const distance = (other: RawLog) => blockOf(other) - block || Number(other.logIndex) - index;
    while (place < others.length && distance(others[place] as RawLog) < 0) place += 1;
    const other = others[place];
    return { log, transfer: other !== undefined && distance(other) === 0 ? other : undefined };
  });
}

/** Each authorization's transfer, which is the next log of its transaction. */
async function transfersOf(provider: Provider, used: readonly RawLog[]): Promise<readonly FetchedTransfer[]> {
  const [first, last] = [used[0], used.at(-1)] as [RawLog, RawLog];
  const payers = [...new Set(used.map((log) => topicOf(log, 1)))];
  const filter: LogFilter = { address: USDC, topics: [TRANSFER_TOPIC, payers] };
  try {
    for (let tries = 0; tries < MOST_ANSWERS; tries += 1) {
      const logs = await askLogs(provider, filter, { first: blockOf(first), last: blockOf(last) });
      const found = withNext(used, logs);
      if (found.every(({ log, transfer }) => isOf(log, transfer)))
        return found.map(({ transfer }) => transferOf(transfer as RawLog, true));
    }
  } catch (error) {
    if (!(error instanceof TooMuchError) || used.length === 1) throw error;
    const half = used.length >> 1;
    return [...(await transfersOf(provider, used.slice(0, half))), ...(await transfersOf(provider, used.slice(half)))];
  }
  throw new FetchError(
    `Nodes return no transfers for authorizations in blocks ${blockOf(first)} to ${blockOf(last)}. Run it again to go on`,
  );
}

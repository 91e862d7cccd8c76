import { toEventSelector } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import { TRANSFER_TOPIC } from "../ledger.ts";
import { type Blocks, type Log, type LogFilter, placeOf, readNextLogs, WrongAnswerError } from "./log-answers.ts";
import { ask, type LogBatch, readLogs, type Width } from "./logs.ts";
import { type Provider, TooMuchError } from "./provider.ts";

const USDC = NETWORKS[MAIN_NETWORK].usdc.address;
const USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");
/** What providers take in one filter; more payers than that are asked for in turn. */
const MOST_PAYERS = 1_000;

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
const topicOf = (log: Log, index: number): string => log.topics[index] ?? "";

const transferOf = (log: Log, authorised: boolean): FetchedTransfer => ({
  ...{ block: log.block, time: log.time, transaction: log.transaction, logIndex: log.index },
  from: addressOf(log.topics[1]),
  to: addressOf(log.topics[2]),
  value: BigInt(log.data),
  authorised,
  blockHash: log.blockHash,
});

/** Whether the first is the AuthorizationUsed of the second: USDC emits both together. */
const isOf = (used: Log | undefined, transfer: Log | undefined): transfer is Log =>
  used !== undefined &&
  transfer !== undefined &&
  used.blockHash === transfer.blockHash &&
  used.transaction === transfer.transaction &&
  topicOf(used, 1) === topicOf(transfer, 1);

/** All transfers of these blocks. */
export async function* readAll(reading: Reading, blocks: Blocks): AsyncGenerator<TransferBatch> {
  const filter: LogFilter = { address: USDC, topics: [[TRANSFER_TOPIC, USED_TOPIC]] };
  for await (const batch of readLogs({ ...reading, filter }, blocks)) {
    const moved = batch.logs.flatMap((log, place) => {
      if (topicOf(log, 0) !== TRANSFER_TOPIC) return [];
      const before = batch.logs[place - 1];
      const isNext = before !== undefined && topicOf(before, 0) === USED_TOPIC && placeOf(before) + 1 === placeOf(log);
      return [transferOf(log, isNext && isOf(before, log))];
    });
    yield { blocks: batch.blocks, transfers: moved };
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
function partsOf({ logs }: LogBatch): readonly (readonly Log[])[] {
  const parts: Log[][] = [];
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

/** Each authorization's transfer, which is the next log of its transaction. */
async function transfersOf(provider: Provider, used: readonly Log[]): Promise<readonly FetchedTransfer[]> {
  const blocks = { first: used[0]?.block ?? 0, last: used.at(-1)?.block ?? 0 };
  const payers = [...new Set(used.map((log) => topicOf(log, 1)))];
  const filter: LogFilter = { address: USDC, topics: [TRANSFER_TOPIC, payers] };
  const read = (answer: unknown) => {
    const transfers = readNextLogs(answer, filter, used);
    return used.map((log, order) => {
      const transfer = transfers[order];
      if (isOf(log, transfer)) return transfer;
      throw new WrongAnswerError(`no transfer for an authorization in block ${log.block}`);
    });
  };
  try {
    const transfers = await ask(provider, { filter, blocks }, read);
    return transfers.map((log) => transferOf(log, true));
  } catch (error) {
    if (!(error instanceof TooMuchError) || used.length === 1) throw error;
    const half = used.length >> 1;
    return [...(await transfersOf(provider, used.slice(0, half))), ...(await transfersOf(provider, used.slice(half)))];
  }
}

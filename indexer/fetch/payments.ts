import { toEventSelector } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../../api/platform/networks.ts";
import { TRANSFER_TOPIC } from "../ledger.ts";
import { type Blocks, type Log, type LogFilter, placeOf, readLogAnswer, WrongAnswerError } from "./log-answers.ts";
import { paramsOf, type Reading, readLogs } from "./logs.ts";
import { type Provider, TooMuchError } from "./provider.ts";

const USDC = NETWORKS[MAIN_NETWORK].usdc.address;
const USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");
/** Providers take no more in one filter; more payers than that are asked for in turn. */
const MOST_PAYERS = 1_000;

/** A transfer of USDC. */
export interface FetchedTransfer {
  readonly log: Log;
  readonly authorised: boolean;
}

const payerOf = (log: Log): string => log.topics[1] ?? "";

/** The log after this `AuthorizationUsed`, if it is that payment's transfer: USDC emits both together. */
function transferAfter(used: Log, byPlace: ReadonlyMap<number, Log>): Log | undefined {
  const next = byPlace.get(placeOf(used) + 1);
  const isOf =
    next?.topics[0] === TRANSFER_TOPIC &&
    used.blockHash === next.blockHash &&
    used.transaction === next.transaction &&
    payerOf(used) === payerOf(next);
  return isOf ? next : undefined;
}

const byPlaceOf = (logs: readonly Log[]) => new Map(logs.map((log) => [placeOf(log), log]));

/** All transfers of these blocks. */
export async function* readAll(reading: Reading, blocks: Blocks): AsyncGenerator<readonly FetchedTransfer[]> {
  for await (const { logs } of readLogs(reading, { address: USDC, topics: [[TRANSFER_TOPIC, USED_TOPIC]] }, blocks)) {
    const byPlace = byPlaceOf(logs);
    const [used, moved] = [USED_TOPIC, TRANSFER_TOPIC].map((topic) => logs.filter(({ topics }) => topics[0] === topic));
    const authorized = new Set(used?.map((log) => transferAfter(log, byPlace)));
    yield (moved ?? []).map((log) => ({ log, authorised: authorized.has(log) }));
  }
}

/** The payments by EIP-3009 of these blocks: `AuthorizationUsed` first, then the transfers of those payers. */
export async function* readPayments(reading: Reading, blocks: Blocks): AsyncGenerator<readonly FetchedTransfer[]> {
  for await (const { logs } of readLogs(reading, { address: USDC, topics: [USED_TOPIC] }, blocks)) {
    const transfers = await transfersOf(reading.provider, logs);
    yield transfers.map((log) => ({ log, authorised: true }));
  }
}

/** Each authorization's transfer. */
async function transfersOf(provider: Provider, used: readonly Log[]): Promise<readonly Log[]> {
  if (used.length === 0) return [];
  const payers = [...new Set(used.map(payerOf))];
  if (payers.length > MOST_PAYERS) return halves(provider, used);
  const filter: LogFilter = { address: USDC, topics: [TRANSFER_TOPIC, payers] };
  const blocks = { first: used[0]?.block ?? 0, last: used.at(-1)?.block ?? 0 };
  const read = (answer: unknown) => {
    const byPlace = byPlaceOf(readLogAnswer(answer, filter, blocks));
    return used.map((log) => {
      const transfer = transferAfter(log, byPlace);
      if (transfer !== undefined) return transfer;
      throw new WrongAnswerError(`no transfer for an authorization in block ${log.block}`);
    });
  };
  return provider.ask("eth_getLogs", paramsOf(filter, blocks), read).catch((error: unknown) => {
    if (!(error instanceof TooMuchError) || used.length === 1) throw error;
    return halves(provider, used);
  });
}

async function halves(provider: Provider, used: readonly Log[]): Promise<readonly Log[]> {
  const half = used.length >> 1;
  return (await Promise.all([used.slice(0, half), used.slice(half)].map((some) => transfersOf(provider, some)))).flat();
}

const addressIn = (topic: string | undefined): string => `0x${(topic ?? "").slice(26)}`;

/** A transfer as a line of a CSV file. */
export function lineOf({ log, authorised }: FetchedTransfer, time: number): string {
  const { block, transaction, index, topics, data } = log;
  return `${block},${time},${transaction},${index},${addressIn(topics[1])},${addressIn(topics[2])},${BigInt(data)},${authorised}\n`;
}

import {
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
import { type Reading, readLogs } from "./logs.ts";

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

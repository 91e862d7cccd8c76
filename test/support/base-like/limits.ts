import { type Call, type Fault, type Refusal, refuse } from "../chain/rpc.ts";
import { type Profile, type ProviderError, REFUSALS } from "./profiles.ts";
import { type Filter, numberOf } from "./view.ts";

/** What a provider refuses of a whole HTTP request. */
export interface Limits {
  /** The next HTTP requests get this status instead of an answer. */
  readonly busy: (status: keyof typeof REFUSALS, times: number) => void;
  readonly refuse: (calls: readonly Call[]) => Refusal | null;
}

export function openLimits({ batch, logs }: Profile, head: () => bigint): Limits {
  let status: keyof typeof REFUSALS = 429;
  let left = 0;
  return {
    busy: (next, times) => {
      status = next;
      left = times;
    },
    refuse: (calls) => {
      if (left > 0) {
        left -= 1;
        const headers: Record<string, string> = status === 429 ? { "retry-after": "1" } : {};
        return { status, headers, body: REFUSALS[status] };
      }
      if (calls.length > batch.max) return failed(batch.tooManyStatus, null, batch.tooMany);
      const [call] = calls;
      if (calls.length !== 1 || call === undefined) return null;
      const wide = tooWide(logs, call, head());
      return wide === null ? null : failed(logs.tooManyBlocksStatus, call.id, wide);
    },
  };
}

const failed = (status: number, id: number | null, error: ProviderError): Refusal => ({
  status,
  body: JSON.stringify({ jsonrpc: "2.0", id, error }),
});

/** Why this call asks for logs of too many blocks; null if it does not. */
function tooWide(logs: Profile["logs"], { method, params }: Call, head: bigint): ProviderError | null {
  const { fromBlock, toBlock, blockHash } = (params?.[0] ?? {}) as Filter;
  if (method !== "eth_getLogs" || blockHash !== undefined) return null;
  const first = fromBlock === "earliest" ? 0n : (numberOf(fromBlock) ?? head);
  const last = numberOf(toBlock) ?? head;
  return last - first + 1n > logs.maxBlocks ? logs.tooManyBlocks(first) : null;
}

/** Refuses `eth_getLogs` that asks for too many blocks, or would return too many logs. */
export const limitedLogs =
  ({ logs }: Profile, head: () => bigint): Fault =>
  async (call, pass) => {
    const wide = tooWide(logs, call, head());
    if (wide !== null) return refuse(call, wide.code, wide.message);
    const reply = await pass(call);
    const isTooMuch = call.method === "eth_getLogs" && ((reply.result ?? []) as unknown[]).length > logs.maxLogs;
    return isTooMuch ? refuse(call, logs.tooManyLogs.code, logs.tooManyLogs.message) : reply;
  };

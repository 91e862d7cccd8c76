import type { Call } from "../chain/rpc.ts";

/** What was asked of the provider, by method; items of a batch count one by one. */
export interface CallCount {
  readonly byMethod: () => Readonly<Record<string, number>>;
  readonly total: () => number;
  /** HTTP requests, batches as one. */
  readonly requests: () => number;
  readonly reset: () => void;
}

export interface CallCounter extends CallCount {
  readonly count: (calls: readonly Call[]) => void;
}

export function countCalls(): CallCounter {
  let requests = 0;
  const counts = new Map<string, number>();
  return {
    byMethod: () => Object.fromEntries([...counts].sort()),
    total: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
    requests: () => requests,
    reset: () => {
      requests = 0;
      counts.clear();
    },
    count: (calls) => {
      requests += 1;
      for (const { method } of calls) counts.set(method, (counts.get(method) ?? 0) + 1);
    },
  };
}

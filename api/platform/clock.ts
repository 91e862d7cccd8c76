import { setTimeout as wait } from "node:timers/promises";

/** Milliseconds since an arbitrary moment; never runs backwards. */
export const elapsedMs = (): number => performance.now();

/** Resolves after `ms` milliseconds. */
export const sleep = (ms: number): Promise<void> => wait(ms);

/** Resolves after `ms` milliseconds. Rejects with the signal's reason if it aborts before. */
export const sleepUnlessAborted = (ms: number, signal: AbortSignal): Promise<void> =>
  wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted());

/** Resolves to null after `ms` milliseconds, without keeping the process alive. */
export const late = (ms: number): Promise<null> => wait(ms, null, { ref: false });

/** Repeats the work at an interval in milliseconds until the returned function is called. */
export function every(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms);
  return () => clearInterval(timer);
}

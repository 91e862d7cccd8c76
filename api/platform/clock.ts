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

/** The first second of the year 10000, when ISO 8601 starts to need more than four digits for the year. */
const YEAR_10000 = 253_402_300_800n;

/**
 * Returns the instant of a decimal number of Unix seconds; null from the year 10000, or if the text is not such a
 * number. EIP-3009 allows any 256-bit number, far beyond any calendar.
 */
export function dateOfUnix(seconds: string): Date | null {
  if (!/^\d{1,78}$/.test(seconds)) return null;
  const time = BigInt(seconds);
  return time < YEAR_10000 ? new Date(Number(time) * 1000) : null;
}

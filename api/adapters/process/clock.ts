import { setTimeout as wait } from "node:timers/promises";

/** Milliseconds from a moment in the past; never runs backwards. */
export const elapsedMs = (): number => performance.now();

/** Resolves after so many milliseconds. */
export const sleep = (ms: number): Promise<void> => wait(ms);

/** Null after so many milliseconds; keeps no process alive. */
export const late = (ms: number): Promise<null> => wait(ms, null, { ref: false });

/** Does the work every so many milliseconds until the returned function is called. */
export function every(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms);
  return () => clearInterval(timer);
}

import { Busy } from "../../../arbiter/fetcher.ts";
import { Failed } from "./dial.ts";

type Slots = <Value>(signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>;

const RETRY_AFTER_SECONDS = 10;

/** Waits in line. Rejects with `Busy` after `queueMs`, and with the signal's reason if it aborts. */
function waitIn(line: (() => void)[], queueMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (act: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      const place = line.indexOf(turn);
      if (place >= 0) line.splice(place, 1);
      act();
    };
    const turn = () => leave(resolve);
    const onAbort = () => leave(() => reject(signal.reason));
    const timer = setTimeout(() => leave(() => reject(new Busy(RETRY_AFTER_SECONDS))), queueMs);
    signal.addEventListener("abort", onAbort);
    line.push(turn);
  });
}

/** Limits how many tasks run at once. The others wait in order of arrival, and get `Busy` if it takes too long. */
export function createSlots(limit: number, queueMs: number): Slots {
  let free = limit;
  const line: (() => void)[] = [];
  const take = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    if (free === 0) return waitIn(line, queueMs, signal);
    free -= 1;
  };
  /** Hands a free slot straight to the longest waiter. */
  const give = () => {
    const [next] = line;
    if (next === undefined) free += 1;
    else next();
  };
  return async (signal, work) => {
    await take(signal);
    try {
      return await work();
    } finally {
      give();
    }
  };
}

/** Runs work under a signal that aborts with `Failed("timeout")` at the deadline, or when the caller's does. */
export async function withDeadline<Value>(
  deadlineMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(new Failed("timeout")), deadlineMs);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

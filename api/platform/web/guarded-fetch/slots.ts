import PQueue from "p-queue";
import { Busy } from "../../../arbiter/fetcher.ts";
import { Failed } from "./dial.ts";

type Slots = <Value>(signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>;

const RETRY_AFTER_SECONDS = 10;

/** Limits how many tasks run at once. The others wait in order of arrival, and get `Busy` after `queueMs`. */
export function createSlots(limit: number, queueMs: number): Slots {
  const queue = new PQueue({ concurrency: limit });
  return (signal, work) => {
    const wait = new AbortController();
    const timer = setTimeout(() => wait.abort(new Busy(RETRY_AFTER_SECONDS)), queueMs);
    const begin = () => {
      clearTimeout(timer);
      return work();
    };
    return queue.add(begin, { signal: AbortSignal.any([signal, wait.signal]) }).finally(() => clearTimeout(timer));
  };
}

/** Runs work under a signal that aborts with `Failed("timeout")` at the deadline, or when the caller's does. */
export async function withDeadline<Value>(
  deadlineMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new Failed("timeout")), deadlineMs);
  try {
    return await work(AbortSignal.any([signal, deadline.signal]));
  } finally {
    clearTimeout(timer);
  }
}

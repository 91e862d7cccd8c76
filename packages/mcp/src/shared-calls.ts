/** What a run answers, and what is to be done once the answer has been handed over. */
export interface Finished<T> {
  readonly answer: T;
  readonly after: () => Promise<void>;
}

interface Running {
  readonly answer: Promise<unknown>;
  /** Once `after` is done. */
  readonly over: Promise<void>;
  isAnswered: boolean;
}

/**
 * Shares one run among calls for the same thing that come before its answer: a client that repeats a call, having lost
 * patience, is not buying twice. A call that comes after the answer has a run of its own.
 */
export function createSharedCalls() {
  const running = new Map<string, Running>();
  return async <T>(key: string, work: () => Promise<Finished<T>>): Promise<T> => {
    for (let run = running.get(key); run !== undefined; run = running.get(key)) {
      if (!run.isAnswered) return run.answer as Promise<T>;
      await run.over;
    }
    const finished = work();
    const run: Running = {
      answer: finished.then(({ answer }) => answer),
      over: finished.then(
        async ({ after }) => {
          run.isAnswered = true;
          // The answer leaves this program first. Killed in between, it answers the next call with it once more.
          await new Promise(setImmediate);
          await after().catch((error: Error) => console.error(error.message));
          running.delete(key);
        },
        () => {
          running.delete(key);
        },
      ),
      isAnswered: false,
    };
    running.set(key, run);
    return run.answer as Promise<T>;
  };
}

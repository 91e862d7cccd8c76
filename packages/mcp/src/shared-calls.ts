/** The result of a run, and the work to do once the result has been handed over. */
export interface Finished<T> {
  readonly answer: T;
  readonly after: () => Promise<void>;
}

interface Running {
  readonly answer: Promise<unknown>;
  /** Resolves once `after` is done. */
  readonly over: Promise<void>;
  isAnswered: boolean;
}

/**
 * Shares one run among calls for the same thing that come before its result: a client that gave up and repeats a call
 * does not buy twice. A call that comes after the result starts a new run.
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
          // The result leaves this program first. If the program is killed in between, the next call gets the result
          // again.
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

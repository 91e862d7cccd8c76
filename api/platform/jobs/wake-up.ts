import { setTimeout as sleep } from "node:timers/promises";

/** Ends the pause of a recurring job early. */
export interface WakeUp {
  /** Ends the current pause, or the next one if none has begun. */
  wake(): void;
  /** Resolves after `ms` milliseconds, or as soon as `wake` was called since the last pause ended. */
  wait(ms: number): Promise<void>;
}

export function createWakeUp(): WakeUp {
  let pause = new AbortController();
  return {
    wake: () => pause.abort(),
    async wait(ms) {
      await sleep(ms, undefined, { signal: pause.signal }).catch(() => {});
      pause = new AbortController();
    },
  };
}

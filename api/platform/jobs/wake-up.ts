import { setTimeout as sleep } from "node:timers/promises";

/** Ends the pause of somebody who works now and then. */
export interface WakeUp {
  /** Ends the pause; the next one, if it has not begun. */
  ring(): void;
  /** Resolves after `ms` milliseconds, or as soon as it has rung since the last pause ended. */
  wait(ms: number): Promise<void>;
}

export function createWakeUp(): WakeUp {
  let pause = new AbortController();
  return {
    ring: () => pause.abort(),
    async wait(ms) {
      await sleep(ms, undefined, { signal: pause.signal }).catch(() => {});
      pause = new AbortController();
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "../slice.ts";
import { traced } from "../telemetry/tracing.ts";
import type { JobWatch } from "./job-watch.ts";

export interface RunParts {
  readonly watch: JobWatch;
  readonly log: { error(facts: object, message: string): void };
}

/** Starts the recurring jobs; the returned function stops them and waits for running ones to finish. */
export function runJobs(jobs: readonly Job[], { watch, log }: RunParts): () => Promise<void> {
  let isStopped = false;
  const started = jobs.map(({ name, everyMs, run, onWork }) => {
    const wakeUp = createWakeUp();
    onWork?.(wakeUp.wake);
    const repeat = async () => {
      while (!isStopped) {
        const end = watch.begin(name);
        await traced(`job ${name}`, { kind: "internal" }, run).then(
          () => end("done"),
          (error: unknown) => {
            end("failed");
            log.error({ err: error }, `the job ${name} failed; it will run again`);
          },
        );
        await wakeUp.wait(everyMs);
      }
    };
    return { ended: repeat(), wake: wakeUp.wake };
  });
  return async () => {
    isStopped = true;
    for (const { wake } of started) wake();
    await Promise.all(started.map(({ ended }) => ended));
    await Promise.all(jobs.map(({ idle }) => idle?.()));
  };
}

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

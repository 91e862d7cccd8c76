import type { Job } from "../slice.ts";
import { traced } from "../telemetry/tracing.ts";
import type { JobWatch } from "./job-watch.ts";
import { createWakeUp } from "./wake-up.ts";

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

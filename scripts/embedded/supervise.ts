import { setTimeout as delay } from "node:timers/promises";
import { type GuardedProcess, type ProcessPlan, startGuarded } from "./guarded-process.ts";
import { waitUntil } from "./wait-until.ts";

export interface Service {
  readonly name: string;
  readonly plan: ProcessPlan;
  readonly isReady: () => Promise<boolean>;
  readonly readyWithinMs: number;
  readonly onTrouble: (line: string) => void;
}

export interface SupervisedService {
  /** Rejects, with the service's last output, if it ends before it is ready or is not ready in time. */
  readonly ready: Promise<void>;
  readonly stop: () => Promise<void>;
}

const RETRY_MS = 1_000;
/** Not shorter, because polling slows down the service's start. */
const READY_POLL_MS = 200;

/** Runs a service until `stop`. Once it has been ready, it is restarted whenever it ends. */
export async function supervise(service: Service): Promise<SupervisedService> {
  let run = await startGuarded(service.plan);
  let isStopping = false;
  const ready = whenReady(service, run, () => isStopping);
  const keepRunning = async () => {
    while (!isStopping) {
      const outcome = await run.ended;
      if (isStopping) return;
      service.onTrouble(`The ${service.name} exited (${outcome}); restarting.`);
      await delay(RETRY_MS);
      if (!isStopping) run = await startGuarded(service.plan);
    }
    // It was restarted while stopping.
    await run.stop();
  };
  const kept = ready.then(keepRunning, () => {});
  const stop = async () => {
    isStopping = true;
    await run.stop();
    await kept;
  };
  return { ready, stop };
}

async function whenReady(service: Service, run: GuardedProcess, isStopping: () => boolean): Promise<void> {
  const done = async () => isStopping() || !run.running() || (await service.isReady());
  const inTime = await waitUntil(done, service.readyWithinMs, READY_POLL_MS);
  if (isStopping()) throw new Error(`The ${service.name} was stopped before it was ready.`);
  if (inTime && run.running()) return;
  const what = run.running() ? `was not ready after ${service.readyWithinMs / 1000} s` : "exited before it was ready";
  throw new Error(`The ${service.name} ${what}. Its last output:\n${run.lastOutput().trim() || "(none)"}`);
}

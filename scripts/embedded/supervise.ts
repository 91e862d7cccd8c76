import { setTimeout as delay } from "node:timers/promises";
import { type GuardedProcess, type ProcessPlan, startGuarded } from "./guarded-process.ts";
import { waitUntil } from "./wait-until.ts";

export interface Service {
  readonly name: string;
  readonly plan: ProcessPlan;
  readonly isReady: () => Promise<boolean>;
  readonly readyWithinMs: number;
  readonly onStart: (pid: number) => void;
  readonly onTrouble: (line: string) => void;
}

export interface SupervisedService {
  /** Rejects, with the service's last output, if it ends before it is ready or is not ready in time. */
  readonly ready: Promise<void>;
  readonly stop: () => Promise<void>;
}

const FIRST_RETRY_MS = 500;
/** Asking takes time that the service needs to get ready. */
const READY_POLL_MS = 200;
const LAST_RETRY_MS = 10_000;
/** After running this long, a crash counts as the first again. */
const STEADY_MS = 60_000;

/** Runs a service until `stop`. Once it has been ready, it is restarted whenever it ends. */
export async function supervise(service: Service): Promise<SupervisedService> {
  const stopping = new AbortController();
  const run = await begin(service);
  const current = { run };
  const ready = whenReady(service, run, stopping.signal);
  const kept = ready.then(
    () => keepRunning(service, current, stopping.signal),
    () => {},
  );
  const stop = async () => {
    stopping.abort();
    await current.run.stop();
    await kept;
  };
  return { ready, stop };
}

async function begin({ plan, onStart }: Service): Promise<GuardedProcess> {
  const run = await startGuarded(plan);
  onStart(run.pid);
  return run;
}

async function whenReady(service: Service, run: GuardedProcess, stopping: AbortSignal): Promise<void> {
  const done = async () => stopping.aborted || !run.running() || (await service.isReady());
  const inTime = await waitUntil(done, service.readyWithinMs, READY_POLL_MS);
  if (stopping.aborted) throw new Error(`The ${service.name} was stopped before it was ready.`);
  if (inTime && run.running()) return;
  const what = run.running() ? `was not ready after ${service.readyWithinMs / 1000} s` : "exited before it was ready";
  throw new Error(`The ${service.name} ${what}. Its last output:\n${run.lastOutput().trim() || "(none)"}`);
}

async function keepRunning(service: Service, current: { run: GuardedProcess }, stopping: AbortSignal): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  while (!stopping.aborted) {
    const started = Date.now();
    const outcome = await current.run.ended;
    if (stopping.aborted) return;
    if (Date.now() - started > STEADY_MS) retryMs = FIRST_RETRY_MS;
    service.onTrouble(`The ${service.name} exited (${outcome}); restarting in ${retryMs / 1000} s.`);
    await delay(retryMs, undefined, { signal: stopping }).catch(() => {});
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    if (!stopping.aborted) current.run = await begin(service);
  }
  // It may have been restarted at the very moment of stopping.
  await current.run.stop();
}

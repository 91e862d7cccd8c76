import { setTimeout as sleep } from "node:timers/promises";
import type { JobWatch } from "../operations/job-watch.ts";
import type { Gate } from "../payments/gate.ts";
import type { Journal } from "../payments/journal.ts";

export interface JobParts {
  readonly gate: Gate;
  readonly journal: Journal;
  readonly relayers: readonly { readonly name: string; tend(): Promise<void> }[];
  readonly escrow: { settleDue(): Promise<number>; refundOverdue(): Promise<number> };
  readonly upkeep: {
    readonly proofs: { publishDue(): Promise<number>; watch(): Promise<void> };
    readonly refunds: { giveBack(): Promise<number> };
  };
  readonly watch: JobWatch;
  readonly log: { warn(facts: object, message: string): void; error(facts: object, message: string): void };
}

const RESOLVE_EVERY_MS = 1_000;
const TEND_EVERY_MS = 2_000;
const PRUNE_EVERY_MS = 3_600_000;
const WATCH_EVERY_MS = 30_000;
const PUBLISH_EVERY_MS = 10_000;
const REFUND_EVERY_MS = 60_000;
const ESCROW_EVERY_MS = 500;
const REFUND_OVERDUE_EVERY_MS = 10_000;
/** An unresolved payment older than this deserves an alert. */
const ALERT_AFTER_SECONDS = 120;

/** Starts the recurring jobs; the returned function stops them and waits for running ones to finish. */
export function runJobs({ gate, journal, relayers, upkeep, escrow, watch, log }: JobParts): () => Promise<void> {
  const stopped = new AbortController();
  const every = async (ms: number, name: string, work: () => Promise<unknown>): Promise<void> => {
    while (!stopped.signal.aborted) {
      const end = watch.begin(name);
      await work().then(
        () => end("done"),
        (error: unknown) => {
          end("failed");
          log.error({ err: error }, `the job ${name} failed; it will run again`);
        },
      );
      await sleep(ms, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  };
  const jobs = [
    every(RESOLVE_EVERY_MS, "resolve", () => gate.resolveDue()),
    every(PRUNE_EVERY_MS, "prune", () => journal.prune()),
    every(WATCH_EVERY_MS, "watch", async () => {
      const { unresolved, oldestSeconds } = await journal.backlog();
      if (oldestSeconds !== null && oldestSeconds > ALERT_AFTER_SECONDS)
        log.warn({ unresolved, oldest_seconds: oldestSeconds }, "payments are waiting for their outcome");
    }),
    every(ESCROW_EVERY_MS, "escrow", () => escrow.settleDue()),
    every(REFUND_OVERDUE_EVERY_MS, "keep", () => escrow.refundOverdue()),
    every(PUBLISH_EVERY_MS, "publish", () => upkeep.proofs.publishDue()),
    every(WATCH_EVERY_MS, "watch kept", () => upkeep.proofs.watch()),
    every(REFUND_EVERY_MS, "refund", () => upkeep.refunds.giveBack()),
    ...relayers.map(({ name, tend }) => every(TEND_EVERY_MS, name, tend)),
  ];
  return async () => {
    stopped.abort();
    await Promise.all(jobs);
  };
}

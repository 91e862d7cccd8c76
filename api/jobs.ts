import { setTimeout as sleep } from "node:timers/promises";
import type { Gate } from "./payments/gate.ts";
import type { Journal } from "./payments/journal.ts";
import { createBell } from "./platform/jobs/bell.ts";
import type { JobWatch } from "./platform/jobs/job-watch.ts";

export interface JobParts {
  readonly gate: Gate;
  readonly journal: Journal;
  /** Each deletes some of what one part no longer needs, and returns how many rows. */
  readonly prunings: readonly (() => Promise<number>)[];
  readonly relayers: readonly { readonly name: string; tend(): Promise<void> }[];
  readonly escrow: {
    /** Calls back when there is something to settle. */
    onDecided(hear: () => void): void;
    settleDue(): Promise<number>;
    watchMined(): Promise<void>;
    idle(): Promise<void>;
    refundOverdue(): Promise<number>;
    answerContests(): Promise<number>;
  };
  /** Carries publications to other registries; null where there are none. */
  readonly publish: (() => Promise<number>) | null;
  /** Runs exams of sellers; null where none are sold. */
  readonly exams: { runDue(): Promise<number>; idle(): Promise<void> } | null;
  /** Looks at the payments of published exams until they are final. */
  readonly watchExams: () => Promise<void>;
  /** Puts what waits into the transparency log. */
  readonly integrate: () => Promise<number>;
  /** What is said of the log elsewhere: one for each witness, so that none waits for another, and one for anchors. */
  readonly published: readonly { readonly name: string; run(): Promise<void> }[];
  readonly upkeep: {
    readonly proofs: { publishDue(): Promise<number>; watch(): Promise<void> };
    readonly refunds: { giveBack(): Promise<number> };
  };
  readonly watch: JobWatch;
  readonly log: { warn(facts: object, message: string): void; error(facts: object, message: string): void };
}

const RESOLVE_EVERY_MS = 1_000;
const TEND_EVERY_MS = 2_000;
const PRUNE_EVERY_MS = 60_000;
const PRUNE_PAUSE_MS = 50;
const WATCH_EVERY_MS = 30_000;
const PUBLISH_EVERY_MS = 10_000;
/** How often a process asks whether a pass is due; all of them together make one a minute. */
const REFUND_EVERY_MS = 15_000;
const ESCROW_EVERY_MS = 500;
const ESCROW_BLOCKS_EVERY_MS = 2_000;
const PUBLICATIONS_EVERY_MS = 2_000;
const EXAMS_EVERY_MS = 1_000;
const WATCH_EXAMS_EVERY_MS = 5_000;
const INTEGRATE_EVERY_MS = 500;
const OFFER_EVERY_MS = 500;
const REFUND_OVERDUE_EVERY_MS = 10_000;
const CONTESTS_EVERY_MS = 2_000;
/** An unresolved payment older than this deserves an alert, and another one only much later. */
const ALERT_AFTER_SECONDS = 120;
const ALERT_AGAIN_MS = 600_000;

/** Says what waits, again and again but seldom; names what makes no progress, once. */
function watchPayments({ journal, log }: Pick<JobParts, "journal" | "log">): () => Promise<void> {
  let saidAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const { unresolved, oldestSeconds } = await journal.backlog();
    if ((oldestSeconds ?? 0) <= ALERT_AFTER_SECONDS) saidAt = Number.NEGATIVE_INFINITY;
    else if (performance.now() - saidAt > ALERT_AGAIN_MS) {
      saidAt = performance.now();
      log.warn({ unresolved, oldest_seconds: oldestSeconds }, "payments are waiting for their outcome");
    }
    const parked = await journal.nameParked();
    if (parked.length === 0) return;
    // A settled payment is a charge without its result.
    const level = parked.some(({ state }) => state === "settled") ? "error" : "warn";
    log[level]({ payments: parked }, "payments make no progress; they are set aside and looked at once an hour");
  };
}

/** Starts the recurring jobs; the returned function stops them and waits for running ones to finish. */
export function runJobs({
  gate,
  journal,
  prunings,
  relayers,
  upkeep,
  escrow,
  publish,
  exams,
  watchExams,
  integrate,
  published,
  watch,
  log,
}: JobParts): () => Promise<void> {
  let isStopped = false;
  const every = (ms: number, name: string, work: () => Promise<unknown>) => {
    const bell = createBell();
    const run = async () => {
      while (!isStopped) {
        const end = watch.begin(name);
        await work().then(
          () => end("done"),
          (error: unknown) => {
            end("failed");
            log.error({ err: error }, `the job ${name} failed; it will run again`);
          },
        );
        await bell.wait(ms);
      }
    };
    return { ended: run(), ring: bell.ring };
  };
  const settling = every(ESCROW_EVERY_MS, "escrow", () => escrow.settleDue());
  escrow.onDecided(settling.ring);
  const jobs = [
    every(RESOLVE_EVERY_MS, "resolve", () => gate.resolveDue()),
    every(PRUNE_EVERY_MS, "prune", async () => {
      for (const prune of [journal.prune, ...prunings])
        while (!isStopped && (await prune()) > 0) await sleep(PRUNE_PAUSE_MS);
    }),
    every(WATCH_EVERY_MS, "watch", watchPayments({ journal, log })),
    settling,
    every(ESCROW_BLOCKS_EVERY_MS, "escrow blocks", () => escrow.watchMined()),
    every(REFUND_OVERDUE_EVERY_MS, "keep", () => escrow.refundOverdue()),
    every(CONTESTS_EVERY_MS, "contests", () => escrow.answerContests()),
    ...(publish === null ? [] : [every(PUBLICATIONS_EVERY_MS, "erc8004", publish)]),
    ...(exams === null ? [] : [every(EXAMS_EVERY_MS, "exams", exams.runDue)]),
    every(WATCH_EXAMS_EVERY_MS, "exam payments", watchExams),
    every(INTEGRATE_EVERY_MS, "log", () => integrate()),
    ...published.map(({ name, run }) => every(OFFER_EVERY_MS, name, run)),
    every(PUBLISH_EVERY_MS, "publish", () => upkeep.proofs.publishDue()),
    every(WATCH_EVERY_MS, "watch kept", () => upkeep.proofs.watch()),
    every(REFUND_EVERY_MS, "refund", () => upkeep.refunds.giveBack()),
    ...relayers.map(({ name, tend }) => every(TEND_EVERY_MS, name, tend)),
  ];
  return async () => {
    isStopped = true;
    for (const { ring } of jobs) ring();
    await Promise.all(jobs.map(({ ended }) => ended));
    await Promise.all([escrow.idle(), exams?.idle()]);
  };
}

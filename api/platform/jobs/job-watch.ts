/** The health of one recurring job of this process. */
export interface JobHealth {
  readonly name: string;
  readonly ok: boolean;
  readonly runs: number;
  readonly failures: number;
  /** Null before its first success. */
  readonly lastSuccessAt: Date | null;
  /** The duration of its last run, in seconds; null before the first has ended. */
  readonly lastSeconds: number | null;
}

export type JobWatch = ReturnType<typeof createJobWatch>;

/** This many failures in a row are not a coincidence. */
const FAILING_RUNS = 3;
/** A run that takes longer counts as hanging. */
const HANGS_AFTER_MS = 600_000;

interface Kept {
  runs: number;
  failures: number;
  failuresInARow: number;
  /** By the clock of `elapsedMs`. */
  beganMs: number | null;
  lastSuccessAt: Date | null;
  lastSeconds: number | null;
}

/**
 * Tracks the runs of this process's jobs. A job has one run at a time.
 * @param elapsedMs milliseconds since an arbitrary moment; never runs backwards
 */
export function createJobWatch(now: () => Date, elapsedMs = () => now().getTime()) {
  const jobs = new Map<string, Kept>();
  return {
    /** Starts a run. The returned function records its outcome. */
    begin(name: string) {
      const job = jobs.get(name) ?? unknown();
      jobs.set(name, job);
      const beganMs = elapsedMs();
      job.beganMs = beganMs;
      return (outcome: "done" | "failed") => end(job, outcome, { tookMs: elapsedMs() - beganMs, ended: now() });
    },
    /** Returns every job that has started at least once, in order of their first runs. */
    list: (): readonly JobHealth[] => [...jobs].map(([name, job]) => healthOf(name, job, elapsedMs())),
  };
}

const unknown = (): Kept => ({
  runs: 0,
  failures: 0,
  failuresInARow: 0,
  beganMs: null,
  lastSuccessAt: null,
  lastSeconds: null,
});

function end(job: Kept, outcome: "done" | "failed", { tookMs, ended }: { tookMs: number; ended: Date }): void {
  job.beganMs = null;
  job.runs++;
  job.lastSeconds = tookMs / 1000;
  if (outcome === "done") {
    job.failuresInARow = 0;
    job.lastSuccessAt = ended;
  } else {
    job.failures++;
    job.failuresInARow++;
  }
}

function healthOf(name: string, job: Kept, nowMs: number): JobHealth {
  const { runs, failures, lastSuccessAt, lastSeconds } = job;
  const hangs = job.beganMs !== null && nowMs - job.beganMs > HANGS_AFTER_MS;
  return { name, ok: !hangs && job.failuresInARow < FAILING_RUNS, runs, failures, lastSuccessAt, lastSeconds };
}

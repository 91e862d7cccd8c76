/** How one recurring job of this process is doing. */
export interface JobHealth {
  readonly name: string;
  readonly ok: boolean;
  readonly runs: number;
  readonly failures: number;
  /** Null before its first success. */
  readonly lastSuccessAt: Date | null;
  /** How long its last run took, in seconds; null before one has ended. */
  readonly lastSeconds: number | null;
}

export interface JobWatch {
  /** A run starts; the returned function reports how it ended. */
  begin(name: string): (outcome: "done" | "failed") => void;
  /** Every job that has started at least once, in order of their first runs. */
  list(): readonly JobHealth[];
}

/** This many failures in a row are no accident. */
const FAILING_RUNS = 3;
/** No run takes this long: it hangs. */
const HANGS_AFTER_MS = 600_000;

interface Kept {
  runs: number;
  failures: number;
  failuresInARow: number;
  /** By `elapsedMs`. */
  beganMs: number | null;
  lastSuccessAt: Date | null;
  lastSeconds: number | null;
}

/**
 * Tracks how this process's jobs run. A job has one run at a time.
 * @param elapsedMs milliseconds since an arbitrary moment; never runs backwards
 */
export function createJobWatch(now: () => Date, elapsedMs = () => now().getTime()): JobWatch {
  const jobs = new Map<string, Kept>();
  return {
    begin(name) {
      const job = jobs.get(name) ?? unknown();
      jobs.set(name, job);
      const beganMs = elapsedMs();
      job.beganMs = beganMs;
      return (outcome) => end(job, outcome, { tookMs: elapsedMs() - beganMs, ended: now() });
    },
    list: () => [...jobs].map(([name, job]) => healthOf(name, job, elapsedMs())),
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

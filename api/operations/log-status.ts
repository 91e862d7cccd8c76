import { z } from "zod";
import type { LogFacts } from "../log/index.ts";
import { count, time } from "../platform/http/schema.ts";

export interface LogStatus extends LogFacts {
  readonly ok: boolean;
  /** The time since a quorum of witnesses last confirmed that there is no other log. */
  readonly witnessedSeconds: number | null;
}

/** Witnesses are called every minute, so a much higher age means that too few of them answer. */
const OLD_SECONDS = 600;

/** Returns the log's status. `facts` is null while the database does not answer. */
export function logStatus(facts: LogFacts | null, now: Date): LogStatus | null {
  if (facts === null) return null;
  const { witnessed, quorum, size, state, witnesses } = facts;
  const witnessedSeconds = witnessed && Math.max(0, Math.round((now.getTime() - witnessed.at.getTime()) / 1_000));
  const isYoung = quorum === 0 || size === 0 || (witnessedSeconds ?? Number.POSITIVE_INFINITY) <= OLD_SECONDS;
  const ok = state !== "refused" && isYoung && witnesses.every(({ danger }) => danger === null);
  return { ...facts, ok, witnessedSeconds };
}

export const logDocument = (log: LogStatus | null) =>
  log && {
    ok: log.ok,
    state: log.state,
    problem: log.problem,
    size: log.size,
    quorum: log.quorum,
    witnessed_size: log.witnessed?.size ?? null,
    witnessed_at: log.witnessed?.at.toISOString() ?? null,
    witnessed_age_seconds: log.witnessedSeconds,
    witnesses: log.witnesses.map(({ name, size, cosignedAt, error, danger }) => ({
      name,
      size,
      cosigned_at: cosignedAt?.toISOString() ?? null,
      error: error?.text ?? null,
      error_at: error?.at.toISOString() ?? null,
      danger,
    })),
    anchor: log.anchor && {
      size: log.anchor.size,
      state: log.anchor.state,
      transaction: log.anchor.transaction,
      block: log.anchor.block,
      at: log.anchor.at.toISOString(),
    },
  };

/** Null while the database does not answer. */
export const LOG_STATUS = z
  .object({
    ok: z.boolean(),
    state: z.enum(["starting", "checking", "integrating", "refused"]),
    problem: z.string().nullable(),
    size: count,
    quorum: count,
    witnessed_size: count.nullable(),
    witnessed_at: time.nullable(),
    witnessed_age_seconds: count.nullable(),
    witnesses: z.array(
      z.object({
        name: z.string(),
        size: count.nullable(),
        cosigned_at: time.nullable(),
        error: z.string().nullable(),
        error_at: time.nullable(),
        danger: z.string().nullable(),
      }),
    ),
    anchor: z
      .object({
        size: count,
        state: z.string(),
        transaction: z.string().nullable(),
        block: count.nullable(),
        at: time,
      })
      .nullable(),
  })
  .nullable();

import { z } from "zod";
import type { LogFacts } from "../log/index.ts";
import { count, time } from "../platform/http/schema.ts";

/** Witnesses are called every minute, so a much higher age means that too few of them answer. */
const OLD_SECONDS = 600;

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
    /** The time since a quorum of witnesses last confirmed that there is no other log. */
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

/** Returns the log's status. `facts` is null while the database does not answer. */
export function logStatus(facts: LogFacts | null, now: Date): z.infer<typeof LOG_STATUS> {
  if (facts === null) return null;
  const { state, problem, size, quorum, witnessed, witnesses, anchor } = facts;
  const age = witnessed && Math.max(0, Math.round((now.getTime() - witnessed.at.getTime()) / 1_000));
  const isYoung = quorum === 0 || size === 0 || (age ?? Number.POSITIVE_INFINITY) <= OLD_SECONDS;
  return {
    ok: state !== "refused" && isYoung && witnesses.every(({ danger }) => danger === null),
    state,
    problem,
    size,
    quorum,
    witnessed_size: witnessed?.size ?? null,
    witnessed_at: witnessed?.at.toISOString() ?? null,
    witnessed_age_seconds: age,
    witnesses: witnesses.map(({ name, size, cosignedAt, error, danger }) => ({
      name,
      size,
      cosigned_at: cosignedAt?.toISOString() ?? null,
      error: error?.text ?? null,
      error_at: error?.at.toISOString() ?? null,
      danger,
    })),
    anchor: anchor && {
      size: anchor.size,
      state: anchor.state,
      transaction: anchor.transaction,
      block: anchor.block,
      at: anchor.at.toISOString(),
    },
  };
}

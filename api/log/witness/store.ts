import type pg from "pg";
import type { WitnessPolicy } from "../../platform/config/log-settings.ts";
import { bytes, inTransaction, named } from "../../platform/db/connection.ts";
import { createPresence, isGone } from "../../platform/db/presence.ts";

/** A cosignature that has been verified. */
export interface Cosignature {
  readonly keyName: string;
  /** 8 hex digits. */
  readonly keyId: string;
  /** The signature line, with its newline. */
  readonly line: string;
  /** The POSIX time that it names. */
  readonly seconds: number;
}

/** The state of one configured witness. */
export interface WitnessRecord {
  readonly vkey: string;
  /** The newest checkpoint that it has cosigned, and when, or null. */
  readonly cosigned: { readonly size: number; readonly at: Date } | null;
  readonly failures: number;
  /** The reason that its last response did not count, and when; null once it has cosigned again. */
  readonly error: { readonly text: string; readonly at: Date } | null;
  readonly danger: string | null;
}

export interface WitnessLease {
  /** The number of entries that the witness is assumed to have. */
  readonly size: number;
  readonly failures: number;
  /** Must be called when the turn is over, on success and on failure. */
  end(): void;
}

export interface WitnessId {
  readonly generation: number;
  readonly vkey: string;
}

/** The longest pause after repeated failures. */
export const LONGEST_WAIT_SECONDS = 60;

export interface Failure {
  readonly error: string;
  /** At most `LONGEST_WAIT_SECONDS`. */
  readonly waitSeconds: number;
  readonly size?: number;
  readonly danger?: string;
}

/** Longer than an offer takes. After that, or once the first process is gone, another process may take the turn. */
const TURN_SECONDS = 40;
/** A witness that has the newest checkpoint is called again after this time, to renew its cosignature. */
const AGAIN_SECONDS = 60;

const KNOW = "INSERT INTO log_witness (generation, vkey) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/**
 * A witness whose turn belongs to a dead process is due immediately. A time that is further away than the longest pause was
 * written before the clock was set back.
 */
const IS_DUE = `(owner IS NOT NULL AND ${isGone("owner")}
    OR (due_at <= now() OR due_at > now() + interval '${LONGEST_WAIT_SECONDS} seconds')
      AND (failures > 0 OR danger IS NOT NULL OR cosigned_size IS DISTINCT FROM $3
        OR asked_at NOT BETWEEN now() - interval '${AGAIN_SECONDS} seconds' AND now()))`;

const DUE = `SELECT ${IS_DUE} AS is_due FROM log_witness WHERE generation = $1 AND vkey = $2`;

const TAKE_TURN = `UPDATE log_witness SET due_at = now() + interval '${TURN_SECONDS} seconds', asked_at = now(), owner = $4
  WHERE generation = $1 AND vkey = $2 AND ${IS_DUE} RETURNING size, failures`;

const KEEP = `INSERT INTO log_cosignature (generation, size, key_name, key_id, line, timestamp)
  VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`;

/** Keeps only the newest cosignature of a witness for a checkpoint. */
const REPLACE = `DELETE FROM log_cosignature
  WHERE generation = $1 AND size = $2 AND key_name = $3 AND key_id = $4 AND timestamp < $5`;

/** Proofs use the newest checkpoints. Older cosignatures stay for a day, in case slow witnesses still complete a quorum. */
const FORGET = `DELETE FROM log_cosignature
  WHERE generation = $1 AND size < $2 AND at < now() - interval '1 day'`;

const ACCEPTED = `UPDATE log_witness SET size = $3, cosigned_size = $3, cosigned_seconds = $4, due_at = now(),
    owner = NULL, failures = 0, error = NULL, error_at = NULL, danger = NULL
  WHERE generation = $1 AND vkey = $2 AND $3 >= coalesce(cosigned_size, 0)`;

const FAILED = `UPDATE log_witness SET due_at = now() + make_interval(secs => $3), owner = NULL, failures = failures + 1,
    error = $4, error_at = now(), size = coalesce($5, size), danger = coalesce($6, danger)
  WHERE generation = $1 AND vkey = $2`;

const LIST = `SELECT vkey, cosigned_size, cosigned_seconds, failures, error, error_at, danger
  FROM log_witness WHERE generation = $1`;

interface Columns {
  vkey: string;
  cosigned_size: string | null;
  cosigned_seconds: string | null;
  failures: number;
  error: string | null;
  error_at: Date | null;
  danger: string | null;
}

export type WitnessStore = ReturnType<typeof createWitnessStore>;

/** The state of the witnesses, shared by all processes. */
export function createWitnessStore(pool: pg.Pool) {
  const enter = createPresence(pool);
  const isDue = async (place: readonly unknown[]): Promise<boolean> => {
    const found = async () => (await pool.query<{ is_due: boolean }>(named(DUE, place))).rows[0]?.is_due;
    const due = await found();
    if (due !== undefined) return due;
    await pool.query(named(KNOW, place.slice(0, 2)));
    return (await found()) === true;
  };
  return {
    /**
     * Takes the turn to call a witness. Returns null if the witness is not due (it has the newest checkpoint and was called
     * recently), or another process has the turn. The turn of a dead process is over.
     */
    async takeTurn({ generation, vkey }: WitnessId, newest: number): Promise<WitnessLease | null> {
      const place = [generation, vkey, newest];
      if (!(await isDue(place))) return null;
      const { owner, leave } = await enter();
      try {
        const { rows } = await pool.query<{ size: string; failures: number }>(named(TAKE_TURN, [...place, owner]));
        if (rows[0] !== undefined) return { size: Number(rows[0].size), failures: rows[0].failures, end: leave };
      } catch (error) {
        leave();
        throw error;
      }
      leave();
      return null;
    },
    /** Records that it has cosigned a checkpoint of this size. */
    accept: ({ generation, vkey }: WitnessId, size: number, cosignatures: readonly Cosignature[]): Promise<void> =>
      inTransaction(pool, async (client) => {
        for (const { keyName, keyId, line, seconds } of cosignatures) {
          await client.query(named(KEEP, [generation, size, keyName, bytes(keyId), line, seconds]));
          await client.query(named(REPLACE, [generation, size, keyName, bytes(keyId), seconds]));
        }
        const seconds = Math.max(...cosignatures.map((one) => one.seconds));
        await client.query(named(ACCEPTED, [generation, vkey, size, seconds]));
        await client.query(named(FORGET, [generation, size]));
      }),
    /** Records a failure. Without `size` or `danger`, the stored value stays. */
    async fail({ generation, vkey }: WitnessId, failure: Failure): Promise<void> {
      const { error, waitSeconds, size = null, danger = null } = failure;
      await pool.query(named(FAILED, [generation, vkey, waitSeconds, error, size, danger]));
    },
    async list(generation: number): Promise<readonly WitnessRecord[]> {
      const { rows } = await pool.query<Columns>(named(LIST, [generation]));
      return rows.map(recordOf);
    },
  };
}

const recordOf = ({
  vkey,
  cosigned_size,
  cosigned_seconds,
  failures,
  error,
  error_at,
  danger,
}: Columns): WitnessRecord => ({
  vkey,
  cosigned:
    cosigned_size === null ? null : { size: Number(cosigned_size), at: new Date(Number(cosigned_seconds) * 1_000) },
  failures,
  error: error === null || error_at === null ? null : { text: error, at: error_at },
  danger,
});

/** The newest size with a quorum, and the time of the cosignature that completed it. */
const WITNESSED = `SELECT size, (array_agg(newest ORDER BY newest DESC))[$4] AS seconds
  FROM (SELECT size, max(timestamp) AS newest FROM log_cosignature
    WHERE generation = $1 AND (key_name, key_id) IN (SELECT * FROM unnest($2::text[], $3::bytea[]))
    GROUP BY size, key_name, key_id) AS cosigned
  GROUP BY size HAVING count(*) >= $4 ORDER BY size DESC LIMIT 1`;

/** Returns the newest checkpoint that enough witnesses have cosigned, and when the quorum was complete, or null. */
export async function readWitnessed(
  pool: pg.Pool,
  { witnesses, quorum }: WitnessPolicy,
  generation: number,
): Promise<{ readonly size: number; readonly at: Date } | null> {
  if (quorum === 0) return null;
  const keys = [witnesses.map(({ key }) => key.name), witnesses.map(({ key }) => bytes(key.id))];
  const { rows } = await pool.query<{ size: string; seconds: string }>(named(WITNESSED, [generation, ...keys, quorum]));
  return rows[0] === undefined ? null : { size: Number(rows[0].size), at: new Date(Number(rows[0].seconds) * 1_000) };
}

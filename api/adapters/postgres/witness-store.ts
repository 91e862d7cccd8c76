import type pg from "pg";
import type { WitnessRecord, WitnessStore } from "../../log/witness/ports.ts";
import { bytes, inTransaction, named } from "./connection.ts";

/** Longer than an offer with all its questions takes; then another process may ask. */
const TURN_SECONDS = 40;
/** A witness that has the newest checkpoint is asked again, so that its cosignature stays young. */
const AGAIN_SECONDS = 60;

const KNOW = "INSERT INTO log_witness (generation, vkey) VALUES ($1, $2) ON CONFLICT DO NOTHING";

const TAKE_TURN = `UPDATE log_witness SET due_at = now() + interval '${TURN_SECONDS} seconds', asked_at = now()
  WHERE generation = $1 AND vkey = $2 AND due_at <= now()
    AND (failures > 0 OR danger IS NOT NULL OR cosigned_size IS DISTINCT FROM $3
      OR asked_at < now() - interval '${AGAIN_SECONDS} seconds')
  RETURNING size, failures`;

const KEEP = `INSERT INTO log_cosignature (generation, size, key_name, key_id, line, timestamp)
  VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`;

/** Of one witness for one checkpoint, the newest is enough. */
const REPLACE = `DELETE FROM log_cosignature
  WHERE generation = $1 AND size = $2 AND key_name = $3 AND key_id = $4 AND timestamp < $5`;

/** Proofs use the newest checkpoints; a day is left for witnesses that are slow to meet at one size. */
const FORGET = `DELETE FROM log_cosignature
  WHERE generation = $1 AND size < $2 AND at < now() - interval '1 day'`;

const ACCEPTED = `UPDATE log_witness SET size = $3, cosigned_size = $3, cosigned_seconds = $4, due_at = now(),
    failures = 0, error = NULL, error_at = NULL, danger = NULL
  WHERE generation = $1 AND vkey = $2 AND $3 >= coalesce(cosigned_size, 0)`;

const FAILED = `UPDATE log_witness SET due_at = now() + make_interval(secs => $3), failures = failures + 1,
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

/** What witnesses have of the log, and their cosignatures. */
export const createWitnessStore = (pool: pg.Pool): WitnessStore => ({
  async takeTurn({ generation, vkey }, newest) {
    const taken = async () => {
      const { rows } = await pool.query<{ size: string; failures: number }>(
        named(TAKE_TURN, [generation, vkey, newest]),
      );
      return rows[0] && { size: Number(rows[0].size), failures: rows[0].failures };
    };
    const turn = await taken();
    if (turn !== undefined) return turn;
    const { rowCount } = await pool.query(named(KNOW, [generation, vkey]));
    return rowCount === 1 ? ((await taken()) ?? null) : null;
  },
  accept: ({ generation, vkey }, size, cosignatures) =>
    inTransaction(pool, async (client) => {
      for (const { keyName, keyId, line, seconds } of cosignatures) {
        await client.query(named(KEEP, [generation, size, keyName, bytes(keyId), line, seconds]));
        await client.query(named(REPLACE, [generation, size, keyName, bytes(keyId), seconds]));
      }
      const seconds = Math.max(...cosignatures.map((one) => one.seconds));
      await client.query(named(ACCEPTED, [generation, vkey, size, seconds]));
      await client.query(named(FORGET, [generation, size]));
    }),
  async fail({ generation, vkey }, { error, waitSeconds, size = null, danger = null }) {
    await pool.query(named(FAILED, [generation, vkey, waitSeconds, error, size, danger]));
  },
  async list(generation) {
    const { rows } = await pool.query<Columns>(named(LIST, [generation]));
    return rows.map(recordOf);
  },
});

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

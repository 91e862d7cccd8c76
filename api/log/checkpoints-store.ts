import type pg from "pg";
import type { WitnessPolicy } from "../platform/config/log-settings.ts";
import { bytes, named } from "../platform/db/connection.ts";
import type { LogStore, StoredCheckpoint } from "./store.ts";
import type { WitnessStore } from "./witness/store.ts";

/** The newest size, at or above $5, that at least $4 of these keys have cosigned. */
const WITNESSED = `SELECT size FROM log_cosignature
  WHERE generation = $1 AND size >= $5 AND (key_name, key_id) IN (SELECT * FROM unnest($2::text[], $3::bytea[]))
  GROUP BY size HAVING count(DISTINCT (key_name, key_id)) >= $4 ORDER BY size DESC LIMIT 1`;

/** A checkpoint dated in the future was signed before the clock was set back, and has waited long enough. */
const WAITED = `SELECT abs(extract(epoch FROM now() - at)) * 1000 AS ms FROM log_checkpoint
  WHERE generation = $1 AND size > $2 ORDER BY size LIMIT 1`;

const LINES = `SELECT DISTINCT ON (key_name, key_id) line FROM log_cosignature
  WHERE generation = $1 AND size = $2 ORDER BY key_name, key_id, timestamp DESC`;

const SERVED = "SELECT size FROM log_served WHERE generation = $1";

const SERVE = `INSERT INTO log_served AS before (generation, size) VALUES ($1, $2)
  ON CONFLICT (generation) DO UPDATE SET size = greatest(before.size, excluded.size) RETURNING size`;

export interface CheckpointParts {
  readonly pool: pg.Pool;
  readonly store: LogStore;
  readonly witnesses: WitnessStore;
  readonly policy: WitnessPolicy;
}

export interface WitnessOverview {
  readonly name: string;
  readonly vkey: string;
  /** The size of the newest checkpoint that it has cosigned, or null. */
  readonly size: number | null;
  /** The time of that cosignature. */
  readonly at: Date | null;
}

export type LogCheckpoints = ReturnType<typeof createLogCheckpoints>;

/** Creates the checkpoints that readers get, each with every stored cosignature. */
export function createLogCheckpoints({ pool, store, witnesses, policy }: CheckpointParts) {
  const keys = policy.witnesses.map(({ key }) => key);
  const names = keys.map(({ name }) => name);
  const ids = keys.map(({ id }) => bytes(id));
  const sizeOf = async (text: string, values: readonly unknown[]): Promise<number | null> => {
    const { rows } = await pool.query<{ size: string }>(named(text, values));
    return rows[0] === undefined ? null : Number(rows[0].size);
  };
  const witnessed = async (generation: number, from: number): Promise<StoredCheckpoint | null> => {
    if (policy.quorum === 0) return store.newest(generation);
    const size = await sizeOf(WITNESSED, [generation, names, ids, policy.quorum, from]);
    return size === null ? null : store.checkpointAt(generation, size);
  };
  const merged = async (generation: number, checkpoint: StoredCheckpoint): Promise<StoredCheckpoint> => {
    const { rows } = await pool.query<{ line: string }>(named(LINES, [generation, checkpoint.size]));
    return { ...checkpoint, note: checkpoint.note + rows.map(({ line }) => line).join("") };
  };
  /** Whether the first checkpoint after this size has waited too long: slow witnesses must not stop the log. */
  const hasWaited = async (generation: number, size: number): Promise<boolean> => {
    const { rows } = await pool.query<{ ms: string }>(named(WAITED, [generation, size]));
    return rows[0] !== undefined && Number(rows[0].ms) > policy.waitMs;
  };
  return {
    /** The number of cosignatures that make a checkpoint witnessed. */
    quorum: policy.quorum,
    /**
     * Returns the checkpoint to serve, or null while the log is empty. Its tree is never smaller than one that any process
     * has served: a checkpoint that was served because its witnesses were late stays, even if they cosign an earlier one
     * meanwhile.
     */
    async served(generation: number): Promise<StoredCheckpoint | null> {
      const [newest, good, before] = await Promise.all([
        store.newest(generation),
        witnessed(generation, 0),
        sizeOf(SERVED, [generation]),
      ]);
      if (newest === null) return null;
      const best = good === null || (await hasWaited(generation, good.size)) ? newest : good;
      const size = before !== null && best.size <= before ? before : await sizeOf(SERVE, [generation, best.size]);
      const found = size === null || size === best.size ? best : await store.checkpointAt(generation, size);
      if (found === null)
        throw new Error(`log ${generation}: the checkpoint of ${size} entries was served but is missing`);
      return merged(generation, found);
    },
    /** Returns the newest witnessed checkpoint with this entry, else the newest one with it, else null. */
    async proving(generation: number, index: number): Promise<StoredCheckpoint | null> {
      const found = (await witnessed(generation, index + 1)) ?? (await store.newest(generation));
      return found === null || found.size <= index ? null : merged(generation, found);
    },
    /** Returns the configured witnesses, in their order. */
    async witnesses(generation: number): Promise<readonly WitnessOverview[]> {
      const known = new Map((await witnesses.list(generation)).map((one) => [one.vkey, one]));
      return keys.map(({ name, vkey }) => {
        const { size = null, at = null } = known.get(vkey)?.cosigned ?? {};
        return { name, vkey, size, at };
      });
    },
  };
}

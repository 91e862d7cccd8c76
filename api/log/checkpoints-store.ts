import type pg from "pg";
import { parseVerifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";
import type { WitnessPolicy } from "../platform/config/log-settings.ts";
import { bytes, named } from "../platform/db/connection.ts";
import { type LogCheckpoints, nextServed, type Servable } from "./served-checkpoint.ts";
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

/** Creates the checkpoints that readers get. */
export function createLogCheckpoints({ pool, store, witnesses, policy }: CheckpointParts): LogCheckpoints {
  const keys = policy.witnesses.map(({ key }) => key);
  const names = keys.map(({ name }) => name);
  const ids = keys.map(({ id }) => bytes(id));
  const witnessed = async (generation: number, from: number): Promise<StoredCheckpoint | null> => {
    if (policy.quorum === 0) return store.newest(generation);
    const values = [generation, names, ids, policy.quorum, from];
    const { rows } = await pool.query<{ size: string }>(named(WITNESSED, values));
    return rows[0] === undefined ? null : store.checkpointAt(generation, Number(rows[0].size));
  };
  const merged = async (generation: number, checkpoint: StoredCheckpoint): Promise<StoredCheckpoint> => {
    const { rows } = await pool.query<{ line: string }>(named(LINES, [generation, checkpoint.size]));
    return { ...checkpoint, note: checkpoint.note + rows.map(({ line }) => line).join("") };
  };
  const sizeOf = async (text: string, values: readonly unknown[]): Promise<number | null> => {
    const { rows } = await pool.query<{ size: string }>(named(text, values));
    return rows[0] === undefined ? null : Number(rows[0].size);
  };
  const servable = (generation: number): Servable => ({
    async choice() {
      const [newest, good] = await Promise.all([store.newest(generation), witnessed(generation, 0)]);
      if (newest === null) return null;
      const { rows } =
        good === null ? { rows: [] } : await pool.query<{ ms: string }>(named(WAITED, [generation, good.size]));
      return { newest, witnessed: good, waitedMs: rows[0] === undefined ? null : Number(rows[0].ms) };
    },
    served: () => sizeOf(SERVED, [generation]),
    serve: async (size) => (await sizeOf(SERVE, [generation, size])) ?? size,
    async at(size) {
      const found = await store.checkpointAt(generation, size);
      if (found === null)
        throw new Error(`log ${generation}: the checkpoint of ${size} entries was served but is missing`);
      return found;
    },
  });
  return {
    quorum: policy.quorum,
    async served(generation) {
      const found = await nextServed(servable(generation), policy.waitMs);
      return found && merged(generation, found);
    },
    async proving(generation, index) {
      const found = (await witnessed(generation, index + 1)) ?? (await store.newest(generation));
      return found === null || found.size <= index ? null : merged(generation, found);
    },
    async witnesses(generation) {
      const known = new Map((await witnesses.list(generation)).map((one) => [one.vkey, one]));
      return keys.map(({ vkey }) => {
        const { cosigned = null } = known.get(vkey) ?? {};
        return { name: parseVerifierKey(vkey).name, vkey, size: cosigned?.size ?? null, at: cosigned?.at ?? null };
      });
    },
  };
}

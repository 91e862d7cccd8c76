import type pg from "pg";
import { change, named } from "../platform/db/connection.ts";
import type { Job } from "../platform/slice.ts";
import type { ChainFacts } from "./status.ts";

export interface Observed {
  readonly facts: ChainFacts;
  readonly ageSeconds: number;
}

const EVERY_MS = 5_000;
/** Shorter than the pause between two runs, so that one process may observe repeatedly. */
const HELD_MS = 4_500;
/** Beyond this age, the observing processes are down, or the nodes are this slow. */
const OLD_SECONDS = 60;

const CLAIM = `INSERT INTO observation (held_until) VALUES (now() + interval '${HELD_MS} milliseconds')
  ON CONFLICT (is_only) DO UPDATE SET held_until = excluded.held_until WHERE observation.held_until <= now()`;
const STORE = "UPDATE observation SET taken_at = now(), facts = $1";
const READ = `SELECT facts, extract(epoch FROM now() - taken_at)::float8 AS age FROM observation
  WHERE taken_at > now() - interval '${OLD_SECONDS} seconds'`;

/**
 * Creates access to the last observation of the chains, which all processes share. Whatever their number and the rate
 * of scrapes, only one process observes.
 */
export const createObservations = (pool: pg.Pool, look: () => Promise<ChainFacts>) => ({
  /** Returns null before the first observation, and once the last one is too old. */
  async read(): Promise<Observed | null> {
    const { rows } = await pool.query<{ facts: ChainFacts; age: number }>(named(READ, []));
    const [row] = rows;
    return row === undefined ? null : { facts: row.facts, ageSeconds: row.age };
  },
  job: {
    name: "observe",
    everyMs: EVERY_MS,
    run: async () => {
      if ((await change(pool, CLAIM)) === 1) await change(pool, STORE, [JSON.stringify(await look())]);
    },
  } satisfies Job,
});

import type pg from "pg";
import type { Backlog } from "../../operations/meter.ts";

const TIMEOUT_MS = 2_000;

/** Each part reads a partial index of unfinished rows only, so its cost does not grow with history. */
const WAITING = `SELECT 'payment' AS kind, state AS name, count(*)::int AS count FROM payment
    WHERE (state IN ('settling', 'settled') OR (state = 'fulfilled' AND final_at IS NULL)) AND reason IS NULL GROUP BY state
  UNION ALL SELECT 'payment', 'received', count(*)::int FROM payment WHERE state = 'received'
  UNION ALL SELECT 'withheld', 'withheld', count(*)::int FROM payment WHERE reason = 'bait' AND sealed IS NOT NULL
  UNION ALL SELECT 'task', state, count(*)::int FROM escrow_task WHERE state <> 'final' GROUP BY state`;

interface Row {
  readonly kind: "payment" | "withheld" | "task";
  readonly name: string;
  readonly count: number;
}

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Counts what is waiting, in one query. Rejects if that takes longer than two seconds. */
export const createBacklogReader = (pool: pg.Pool) => async (): Promise<Backlog> => {
  const query: TimedQuery = { name: "backlog", text: WAITING, query_timeout: TIMEOUT_MS };
  const { rows } = await pool.query<Row>(query);
  const of = (wanted: Row["kind"]) =>
    Object.fromEntries(rows.filter(({ kind }) => kind === wanted).map(({ name, count }) => [name, count]));
  return { payments: of("payment"), escrowTasks: of("task"), withheldSignatures: of("withheld").withheld ?? 0 };
};

import type pg from "pg";
import type { Backlog } from "../../platform/metrics/meter.ts";
import { ACTIVE, PARKED } from "./payment-row.ts";
import { COUNTED } from "./upkeep.ts";

const TIMEOUT_MS = 2_000;

const count = (kind: string, name: string, from: string) =>
  `SELECT '${kind}' AS kind, ${name} AS name, count(*)::int AS count FROM (${from} LIMIT ${COUNTED}) counted`;

/** Each part reads a partial index of unfinished rows only, so its cost does not grow with history. */
const WAITING = [
  `${count("payment", "state", `SELECT state FROM payment WHERE ${ACTIVE}`)} GROUP BY state`,
  count("payment", "'received'", "SELECT FROM payment WHERE state = 'received' AND reason IS DISTINCT FROM 'reversed'"),
  count("parked", "'parked'", `SELECT FROM payment WHERE ${PARKED}`),
  count("withheld", "'withheld'", "SELECT FROM payment WHERE reason = 'bait' AND sealed IS NOT NULL"),
  `${count("task", "state", "SELECT state FROM escrow_task WHERE state <> 'final'")} GROUP BY state`,
].join(" UNION ALL ");

interface Row {
  readonly kind: "payment" | "parked" | "withheld" | "task";
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
  return {
    payments: of("payment"),
    parkedPayments: of("parked").parked ?? 0,
    escrowTasks: of("task"),
    withheldSignatures: of("withheld").withheld ?? 0,
  };
};

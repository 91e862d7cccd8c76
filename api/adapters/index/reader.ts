import pg from "pg";

/** Base makes a block every two seconds: an index this far behind them is not running, or not there yet. */
export const MAX_LAG_MS = 60_000;

const TIMEOUT_MS = 1_000;
/** While the index is away, one request in this time finds out; the others are answered at once. */
const ASK_AGAIN_MS = 1_000;

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Null: the index cannot be read now, which is no error of the caller's. */
export type Read = <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => Promise<Row[] | null>;

/** Reads what the indexer keeps, without ever waiting long for it. */
export function createReader(pool: pg.Pool): Read {
  let awayUntil = 0;
  return async <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => {
    if (Date.now() < awayUntil) return null;
    try {
      const timed: TimedQuery = { ...query, query_timeout: TIMEOUT_MS };
      const { rows } = await pool.query<Row>(timed);
      return rows;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      // The pool drops a connection at every error: a reader that insists would cost everybody theirs.
      awayUntil = Date.now() + ASK_AGAIN_MS;
      return null;
    }
  };
}

/** No table, no schema (the first backfill is not over), cancelled by a timeout or a deadlock with a switch of the views, shut down. */
const AWAY = new Set(["42P01", "3F000", "57014", "40P01", "57P01", "57P02", "57P03"]);

/** An error without a SQLSTATE of PostgreSQL's is the connection's: refused, lost, or too slow. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true;
  return AWAY.has(error.code) || ["08", "53"].includes(error.code.slice(0, 2));
}

import pg from "pg";
import { isAway } from "../db/connection.ts";

/** Base makes a block every two seconds: an index further behind than this is not running, or has not caught up yet. */
export const MAX_LAG_MS = 60_000;

const TIMEOUT_MS = 1_000;
/** While the index is down, one request per interval probes it; the others are answered at once. */
const ASK_AGAIN_MS = 1_000;

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Null: the index cannot be read right now, which is not the caller's fault. */
export type Read = <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => Promise<Row[] | null>;

/** Reads what the indexer stores, without ever waiting long. */
export function createReader(pool: pg.Pool): Read {
  let awayUntil = 0;
  return async <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => {
    if (performance.now() < awayUntil) return null;
    try {
      const timed: TimedQuery = { ...query, query_timeout: TIMEOUT_MS };
      const { rows } = await pool.query<Row>(timed);
      return rows;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      // The pool drops a connection on every error, so a reader that keeps retrying would cost all other readers
      // theirs.
      awayUntil = performance.now() + ASK_AGAIN_MS;
      return null;
    }
  };
}

/** No table, no schema (the first backfill is still running), or a deadlock with a switch of the views. */
const NOT_READY = new Set(["42P01", "3F000", "40P01"]);

/** An error without a PostgreSQL SQLSTATE comes from the connection: refused, lost, or too slow. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true;
  return NOT_READY.has(error.code) || isAway(error);
}

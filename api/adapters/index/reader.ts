import pg from "pg";
import { isAway } from "../postgres/connection.ts";
import { type RowsShape, shapeOf } from "./rows.ts";

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
    if (Date.now() < awayUntil) return null;
    try {
      const timed: TimedQuery = { ...query, query_timeout: TIMEOUT_MS };
      const { rows } = await pool.query<Row>(timed);
      return rows;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      // The pool drops a connection on every error, so a reader that keeps retrying would cost all other readers
      // theirs.
      awayUntil = Date.now() + ASK_AGAIN_MS;
      return null;
    }
  };
}

/** Reads rows in the shape that the index has them in. */
export type ReadRows = <Row extends pg.QueryResultRow>(
  query: (rows: RowsShape) => pg.QueryConfig,
) => Promise<Row[] | null>;

/** The shape is asked for once, and again when a statement no longer fits: then the views show another index. */
export function createRowsReader(pool: pg.Pool, viewsSchema: string): ReadRows {
  const read = createReader(pool);
  const readShape = async () => {
    const rows = await read<{ type: string | null }>({
      text: `select (select format_type(atttypid, null) from pg_attribute where attrelid = view and attname = 'wallet') as type
        from to_regclass($1) view where view is not null`,
      values: [`${pg.escapeIdentifier(viewsSchema)}.wallet_day`],
    });
    return rows?.[0] === undefined ? null : shapeOf(rows[0].type);
  };
  let known: RowsShape | null = null;
  return async <Row extends pg.QueryResultRow>(query: (rows: RowsShape) => pg.QueryConfig) => {
    for (let tries = 1; ; tries += 1) {
      known ??= await readShape();
      if (known === null) return null;
      try {
        return await read<Row>(query(known));
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== NO_OPERATOR || tries === MOST_TRIES) throw error;
        known = null;
      }
    }
  };
}

/** Only while the views change is one try not enough. */
const MOST_TRIES = 5;

/** Types that do not compare, or that a function does not take. */
const NO_OPERATOR = "42883";

/** No table, no schema (the first backfill is still running), or a deadlock with a switch of the views. */
const NOT_READY = new Set(["42P01", "3F000", "40P01"]);

/** An error without a PostgreSQL SQLSTATE comes from the connection: refused, lost, or too slow. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true;
  return NOT_READY.has(error.code) || isAway(error);
}

import pg from "pg";
import { isAway } from "../db/connection.ts";

/**
 * Base makes a block every two seconds, so an index further behind than this is not running, or has not caught up yet.
 */
export const MAX_LAG_MS = 60_000;

const TIMEOUT_MS = 1_000;
/** While the index is down, one request per interval probes it. The others are answered immediately. */
const ASK_AGAIN_MS = 1_000;

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Runs a query. Null if the index cannot be read right now, which is not the caller's fault. */
export type Read = <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => Promise<Row[] | null>;

/** Receives the reason why the index counts as unavailable, once per outage. */
export interface IndexLog {
  warn(facts: object, message: string): void;
}

export interface IndexOptions {
  readonly viewsSchema: string;
  readonly log?: IndexLog;
}

/** Returns a function that checks whether an index at a block of this time is recent enough. */
export function createLagCheck(maxLagMs: number, log?: IndexLog): (at: Date, now: Date) => boolean {
  let wasBehind = false;
  return (at, now) => {
    const lagMs = now.getTime() - at.getTime();
    const isBehind = lagMs > maxLagMs;
    if (isBehind && !wasBehind)
      log?.warn(
        { behind_seconds: Math.round(lagMs / 1000) },
        "the index is behind the chain; it counts as unavailable",
      );
    wasBehind = isBehind;
    return !isBehind;
  };
}

/** Creates a reader of the indexer's data that never waits long. */
export function createReader(pool: pg.Pool, log?: IndexLog): Read {
  let awayUntil = 0;
  let wasAway = false;
  return async <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => {
    if (performance.now() < awayUntil) return null;
    try {
      const timed: TimedQuery = { ...query, query_timeout: TIMEOUT_MS };
      const { rows } = await pool.query<Row>(timed);
      wasAway = false;
      return rows;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      // The pool drops a connection on every error, so a reader that keeps retrying would also cost all other readers
      // their connections.
      awayUntil = performance.now() + ASK_AGAIN_MS;
      if (!wasAway) log?.warn({ err: error }, "the index cannot be read; it counts as unavailable");
      wasAway = true;
      return null;
    }
  };
}

/**
 * No table, no schema (the first backfill is still running), or a deadlock with a switch of the views: the index is not
 * ready.
 */
const NOT_READY = new Set(["42P01", "3F000", "40P01"]);

/** An error without a PostgreSQL SQLSTATE comes from the connection: refused, lost, or too slow. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true;
  return NOT_READY.has(error.code) || isAway(error);
}

// How the index stores its data, in SQL (indexer/ponder.schema.ts).

/** Converts an address in text to the key of a row. */
export const keyOf = (address: string): string => `decode(substr(${address}::text, 3), 'hex')`;

/** Converts bytes to text with `0x`. */
export const textOf = (column: string): string => `'0x' || encode(${column}, 'hex')`;

/**
 * Returns SQL for the amount that wallet `me` received from `other`, given as columns of the key's type. In scope
 * `selective`, `paid` has the flows except for balances from before the index began. `offset 0` is a fence, without
 * which the planner scans all of a wallet's rows. The addresses are in the order of the key.
 */
export const receivedIn = (views: string, { me, other }: { readonly me: string; readonly other: string }): string => `
  coalesce((select case when ${me} = low then down_atomic else up_atomic end from (select * from ${views}.pair
    where low = least(${me}, ${other}) and high = greatest(${me}, ${other}) offset 0) r), 0)
    + case reach.scope when 'full' then 0 else coalesce((select atomic - unpaid_atomic
      from (select * from ${views}.paid where payer = ${other} and payee = ${me} offset 0) b), 0) end`;

/**
 * SQL for the number of distinct counterparties, or buyers, over days: `touched` of each day minus those that an
 * earlier day of the window already had. The number at `day - first` in `ages` (`TouchedDay` in indexer/ledger.ts), or
 * its last one, is their count. Select it together with `seenBefore` of the same first day.
 */
export const DISTINCT = `coalesce(sum(touched - coalesce(
    get_byte(seen, 0) * 65536 + get_byte(seen, 1) * 256 + get_byte(seen, 2), 0)), 0)::int`;

/** A join for a table with `day` and `ages`. `first` is the window's first day in SQL. */
export const seenBefore = (first: string): string => `left join lateral (
    select case when day - ${first} >= get_byte(ages, 0)
      then substr(ages, 3 * least(day - ${first} - get_byte(ages, 0), octet_length(ages) / 3 - 1) + 2, 3) end as seen) s
    on day > ${first}`;

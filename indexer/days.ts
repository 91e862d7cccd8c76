import pg from "pg";
import { KEPT_DAYS } from "./ledger.ts";
import { finalizedMark } from "./marks.ts";
import { ponderSchemas, type Queryable } from "./schemas.ts";

const DAY_SECONDS = 86_400;
/** 64 MB of rows: about a second of work, in which only rows are locked that nobody reads. */
const CHUNK_PAGES = 8_192;

const TABLE = `create schema if not exists indexer;
  create table if not exists indexer.dropped_days (schema text primary key, below int4 not null)`;

export interface DroppedDays {
  readonly schema: string;
  /** The first day that is left, counted from 1970-01-01. */
  readonly below: number;
  readonly rows: number;
}

/**
 * Deletes from each index the rows of `wallet_day` that no window reaches back to, once for each day on which it is final.
 * Every row is looked at, because a key begins with its wallet; a pass that does not end begins from the start. Ponder may
 * run: it writes a day's rows on that day only. A reorganization may bring some back, until the next day's pass.
 * @param db of the role that owns the index
 * @param signal once aborted, this ends after the statement that it is at
 */
export async function dropDays(db: pg.Pool, signal?: AbortSignal): Promise<readonly DroppedDays[]> {
  const dropped: DroppedDays[] = [];
  await db.query(TABLE);
  for (const schema of await ponderSchemas(db)) {
    const below = await firstDayOf(db, schema);
    if (below === null || below <= (await droppedBelow(db, schema))) continue;
    const rows = await deleteBelow(db, { schema, below }, signal);
    if (signal?.aborted === true) return dropped;
    await db.query(
      "insert into indexer.dropped_days values ($1, $2) on conflict (schema) do update set below = excluded.below",
      [schema, below],
    );
    dropped.push({ schema, below, rows });
  }
  return dropped;
}

/** The first day that a window may reach back to; null if it is not known, or an earlier release's index has other rows. */
async function firstDayOf(db: Queryable, schema: string): Promise<number | null> {
  const { rows } = await db.query<{ type: string }>(
    `select format_type(atttypid, null) as type from pg_attribute
      where attrelid = to_regclass($1) and attname = 'wallet'`,
    [`${pg.escapeIdentifier(schema)}.wallet_day`],
  );
  const mark = await finalizedMark(db, schema);
  if (rows[0]?.type !== "bytea" || mark === null) return null;
  return Math.floor(mark.timestamp / DAY_SECONDS) - KEPT_DAYS;
}

async function droppedBelow(db: Queryable, schema: string): Promise<number> {
  const { rows } = await db.query<{ below: number }>("select below from indexer.dropped_days where schema = $1", [
    schema,
  ]);
  return rows[0]?.below ?? 0;
}

async function deleteBelow(
  db: pg.Pool,
  { schema, below }: { readonly schema: string; readonly below: number },
  signal: AbortSignal | undefined,
): Promise<number> {
  const table = `${pg.escapeIdentifier(schema)}.wallet_day`;
  const { rows: size } = await db.query<{ pages: string }>(
    "select pg_relation_size($1::regclass) / current_setting('block_size')::int8 as pages",
    [table],
  );
  let rows = 0;
  for (let page = 0; page < Number(size[0]?.pages ?? 0) && signal?.aborted !== true; page += CHUNK_PAGES) {
    const { rowCount } = await db.query(
      `delete from ${table} where ctid >= '(${page},0)'::tid and ctid < '(${page + CHUNK_PAGES},0)'::tid and day < $1`,
      [below],
    );
    rows += rowCount ?? 0;
  }
  return rows;
}

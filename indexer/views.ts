import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { isLocked } from "./index-lock.ts";
import { type Deployment, findIndexes, inTransaction, isBusy, ponderSchemas, type Queryable } from "./schemas.ts";

// Which index the views show. Ponder's own views (--views-schema) would be replaced at each of its starts, before the index has
// read the newest blocks.

/** The schema whose rows the views show; null if they show none. */
export async function shownSchema(db: Queryable, viewsSchema: string): Promise<string | null> {
  const { rows } = await db.query<{ schema: string }>(
    "select table_schema as schema from information_schema.view_table_usage where view_schema = $1 and view_name = 'head'",
    [viewsSchema],
  );
  return rows[0]?.schema ?? null;
}

/** Whether a Ponder that took the index's lock since `since` (by this machine's clock) has filled it. */
export async function isReady(db: Queryable, schema: string, since: number): Promise<boolean> {
  if (!(await ponderSchemas(db)).includes(schema)) return false;
  const { rowCount } = await db.query(
    `select from ${pg.escapeIdentifier(schema)}._ponder_meta
      where key = 'app' and value ->> 'is_ready' = '1' and (value ->> 'heartbeat_at')::int8 >= $1`,
    [since],
  );
  return rowCount === 1;
}

/** Ten seconds of Base's blocks, of which the index that is shown goes on making more. */
const NEAR_BLOCKS = 5;

/**
 * Whether the views may show this index: they show it already, or none, or it has read as far as the one that they show, which
 * is not a newer one that another indexer keeps.
 */
export async function mayBeShown(db: Queryable, { schema }: Deployment, viewsSchema: string): Promise<boolean> {
  const shown = await shownSchema(db, viewsSchema);
  if (shown === null || shown === schema) return true;
  const indexes = await findIndexes(db, viewsSchema);
  const place = (name: string) => indexes.findIndex((one) => one.schema === name);
  const other = indexes[place(shown)];
  if (other !== undefined && place(shown) > place(schema) && (await isLocked(db, other.index))) return false;
  const [ours, theirs] = [await positionOf(db, schema), await positionOf(db, shown)];
  return ours !== null && ours >= (theirs ?? 0) - NEAR_BLOCKS;
}

async function positionOf(db: Queryable, schema: string): Promise<number | null> {
  const { rows } = await db.query<{ block: number }>(
    `select block::float8 as block from ${pg.escapeIdentifier(schema)}.position`,
  );
  return rows[0]?.block ?? null;
}

/** A reader gives up after a second; it waits no longer than this for the views. */
const LOCK_MS = 100;
const RETRY_MS = 200;

/**
 * Makes the views show this index, in one short transaction: a statement reads either the one before or this one. It gives
 * way to readers, and is tried again until it succeeds.
 * @returns the schema that the views showed before, or null
 * @throws when `signal` aborts
 */
export async function showIndex(
  db: pg.Pool,
  { schema }: Deployment,
  { viewsSchema, signal }: { readonly viewsSchema: string; readonly signal: AbortSignal },
): Promise<string | null> {
  const before = await shownSchema(db, viewsSchema);
  while (before !== schema) {
    try {
      await inTransaction(db, (client) => replaceViews(client, schema, viewsSchema));
      break;
    } catch (error) {
      if (!isBusy(error)) throw error;
      await wait(RETRY_MS, undefined, { signal });
    }
  }
  return before;
}

async function replaceViews(db: Queryable, schema: string, viewsSchema: string): Promise<void> {
  const [from, into] = [pg.escapeIdentifier(schema), pg.escapeIdentifier(viewsSchema)];
  const namesOf = async (namespace: string, kinds: readonly string[]) => {
    const { rows } = await db.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = to_regnamespace($1) and relkind = any($2)
        and relname !~ '^_' order by relname`,
      [pg.escapeIdentifier(namespace), kinds],
    );
    return rows.map(({ name }) => pg.escapeIdentifier(name));
  };
  await db.query("select pg_advisory_xact_lock(hashtextextended('indexer.views ' || $1, 0))", [viewsSchema]);
  await db.query(`set local lock_timeout = ${LOCK_MS}`);
  for (const name of await namesOf(viewsSchema, ["v"])) await db.query(`drop view ${into}.${name}`);
  for (const name of await namesOf(schema, ["r", "v"]))
    await db.query(`create view ${into}.${name} as select * from ${from}.${name}`);
}

const READER = "trust_api";

/**
 * Lets the API's role read the views, which carry their own access to the rows behind them. The default privilege makes
 * that true for views that are made again, from the moment they exist.
 */
export async function openToReaders(db: pg.Pool, viewsSchema: string): Promise<void> {
  const views = pg.escapeIdentifier(viewsSchema);
  await db.query(`create schema if not exists ${views}`);
  const role = await db.query("select from pg_roles where rolname = $1", [READER]);
  if (role.rowCount === 0) return;
  await db.query(`grant usage on schema ${views} to ${READER};
    grant select on all tables in schema ${views} to ${READER};
    alter default privileges in schema ${views} grant select on tables to ${READER}`);
}

/** An index that is not ready was written by a process that is coming back, or that lives no more. */
const ABANDONED_MS = 3_600_000;

/** The indexes with views of this name that nothing needs once this one is shown: the older ones, and those left unfinished. */
export async function replacedBy(db: Queryable, { schema }: Deployment, viewsSchema: string): Promise<Deployment[]> {
  const replaced: Deployment[] = [];
  let isNewer = false;
  for (const one of await findIndexes(db, viewsSchema)) {
    if (one.schema === schema) isNewer = true;
    else if (!isNewer || !(await wasWrittenSince(db, one.schema, Date.now() - ABANDONED_MS))) replaced.push(one);
  }
  return replaced;
}

async function wasWrittenSince(db: Queryable, schema: string, since: number): Promise<boolean> {
  if (!(await ponderSchemas(db)).includes(schema)) return false;
  const { rowCount } = await db.query(
    `select from ${pg.escapeIdentifier(schema)}._ponder_meta where (value ->> 'heartbeat_at')::int8 > $1`,
    [since],
  );
  return rowCount !== 0;
}

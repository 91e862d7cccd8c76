import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { isKept } from "./deployment.ts";
import { ROWS_VERSION } from "./rows-version.ts";
import { inTransaction, type Queryable } from "./schemas.ts";

// Which index the views show. A new rows version is made beside the index that serves, by the new release, while the old
// release keeps its own up to date. Then the views show the new one, and the old release waits.

/** A reader waits no longer for the views than that; it gives up after a second. */
const LOCK_MS = 100;
const RETRY_MS = 200;

export interface Shown {
  readonly schema: string;
  readonly viewsSchema: string;
}

/** The schema whose rows the views show; null if they show none. */
export async function shownSchema(db: Queryable, viewsSchema: string): Promise<string | null> {
  const { rows } = await db.query<{ schema: string }>(
    `select table_schema as schema from information_schema.view_table_usage
      where view_schema = $1 and view_name in ('wallet_day', 'position') limit 1`,
    [viewsSchema],
  );
  return rows[0]?.schema ?? null;
}

/** Ten seconds of Base's blocks, of which the one shown goes on making more. */
const NEAR_BLOCKS = 5;

/** Whether an index has what the one shown has, and says where it is; always if none is shown, or it is this one. */
export async function hasCaughtUp(db: Queryable, { schema, viewsSchema }: Shown): Promise<boolean> {
  const shown = await shownSchema(db, viewsSchema);
  if (shown === null || shown === schema) return true;
  const [ours, theirs] = [await positionOf(db, schema), await positionOf(db, shown)];
  return ours !== null && ours >= (theirs ?? 0) - NEAR_BLOCKS;
}

async function positionOf(db: Queryable, schema: string): Promise<number | null> {
  const { rows } = await db.query<{ block: number }>(
    `select block::float8 as block from ${pg.escapeIdentifier(schema)}.position`,
  );
  return rows[0]?.block ?? null;
}

/**
 * Makes the views show this index, in one short transaction: a statement reads either the one before or this one. It gives
 * way to readers, and is tried again until it succeeds.
 * @returns the schema that the views showed before, null if none, or this one if they need no change
 * @throws when `signal` aborts
 */
export async function showIndex(db: pg.Pool, shown: Shown, signal: AbortSignal): Promise<string | null> {
  for (;;) {
    try {
      return await inTransaction(db, (client) => replaceViews(client, shown));
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || !BUSY.has(error.code ?? "")) throw error;
      await wait(RETRY_MS * Math.random(), undefined, { signal });
    }
  }
}

/** A lock was not to be had, or two launchers were at it at once. */
const BUSY = new Set(["55P03", "40P01", "23505", "42P07", "XX000"]);

async function replaceViews(db: pg.PoolClient, { schema, viewsSchema }: Shown): Promise<string | null> {
  await db.query("select pg_advisory_xact_lock(hashtext('indexer.views ' || $1))", [viewsSchema]);
  const before = await shownSchema(db, viewsSchema);
  const wanted = await relationsOf(db, schema);
  const shown = await viewsOf(db, viewsSchema);
  if (wanted.every((name) => shown.get(name) === schema)) return before;
  const [from, into] = [pg.escapeIdentifier(schema), pg.escapeIdentifier(viewsSchema)];
  const statements = [
    ...[...shown.keys()].map((name) => `drop view ${into}.${pg.escapeIdentifier(name)}`),
    ...wanted.map((name) => {
      const quoted = pg.escapeIdentifier(name);
      return `create view ${into}.${quoted} as select * from ${from}.${quoted}`;
    }),
  ];
  await db.query(`set local lock_timeout = ${LOCK_MS}; create schema if not exists ${into}; ${statements.join("; ")}`);
  return before;
}

/** What an index has for readers: its tables and views, but for what Ponder or the launcher needs alone. */
async function relationsOf(db: Queryable, schema: string): Promise<readonly string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'v')
      and relname !~ '^_reorg__' and relname <> 'own_address' order by relname`,
    [pg.escapeIdentifier(schema)],
  );
  return rows.map(({ name }) => name);
}

/** The views that there are, each with the schema of what it shows. */
async function viewsOf(db: Queryable, viewsSchema: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.query<{ name: string; schema: string | null }>(
    `select viewname as name, min(table_schema) as schema from pg_views
      left join information_schema.view_table_usage on view_schema = schemaname and view_name = viewname
      where schemaname = $1 group by viewname`,
    [viewsSchema],
  );
  return new Map(rows.map(({ name, schema }) => [name, schema ?? ""]));
}

/**
 * Whether the views show a newer release's index, which a live process keeps: then this release has nothing to do, and would
 * only take the views back. When that process has been gone for 25 seconds, this release goes on.
 * @returns why to wait, or null
 */
export async function whyOvertaken(db: pg.Pool, viewsSchema: string): Promise<string | null> {
  const shown = await shownSchema(db, viewsSchema);
  if (shown === null || !(await isKept(db, shown))) return null;
  const { rows: columns } = await db.query(
    "select from information_schema.columns where table_schema = $1 and table_name = 'coverage' and column_name = 'rows_version'",
    [viewsSchema],
  );
  if (columns.length === 0) return null;
  const { rows } = await db.query<{ version: number }>(
    `select rows_version as version from ${pg.escapeIdentifier(viewsSchema)}.coverage`,
  );
  const version = rows[0]?.version ?? 0;
  return version > ROWS_VERSION
    ? `a newer release serves ${shown}, with rows of version ${version}; this one's are of version ${ROWS_VERSION}`
    : null;
}

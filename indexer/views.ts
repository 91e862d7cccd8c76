import pg from "pg";
import { inTransaction } from "../api/platform/db/connection.ts";
import { tryLock } from "./index-lock.ts";
import { type Deployment, exists, falseIfBusy, findIndexes, type Queryable } from "./schemas.ts";

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

/** Whether a Ponder that wrote to this schema since `since` (by this machine's clock) has `state`. */
async function wasSeen(db: Queryable, schema: string, { since, state }: { since: number; state: string }) {
  const meta = `${pg.escapeIdentifier(schema)}._ponder_meta`;
  if (!(await exists(db, meta))) return false;
  const { rowCount } = await db.query(
    `select from ${meta} where key = 'app' and (value ->> 'heartbeat_at')::int8 >= $1 and ${state}`,
    [since],
  );
  return rowCount !== 0;
}

/** Whether a Ponder that took the index's lock since then has filled it. */
export const isReady = (db: Queryable, schema: string, since: number): Promise<boolean> =>
  wasSeen(db, schema, { since, state: "value ->> 'is_ready' = '1'" });

/** The index that is shown continues to add blocks. */
const NEAR_BLOCKS = 5;

/**
 * Whether the views may show this index: they show it already, or none, or it has read as far as the one that they show, which
 * is not a newer one that an indexer holds.
 */
export async function mayBeShown(db: Queryable, { schema }: Deployment, viewsSchema: string): Promise<boolean> {
  const shown = await shownSchema(db, viewsSchema);
  if (shown === null || shown === schema) return true;
  const [first, second] = (await findIndexes(db, viewsSchema)).filter((one) => [shown, schema].includes(one.schema));
  const isOlder = first?.schema === schema && second !== undefined;
  if (isOlder && !(await tryLock(db, second.index))) return false;
  const blockOf = (name: string) => `(select block from ${pg.escapeIdentifier(name)}.position)`;
  const { rowCount } = await db.query(
    `select where ${blockOf(schema)} >= coalesce(${blockOf(shown)}, 0) - ${NEAR_BLOCKS}`,
  );
  return rowCount === 1;
}

/**
 * Makes the views show this index, in one short transaction: a statement reads either the one before or this one. It gives
 * way to readers: false if they were in the way, so that it is to be tried again.
 */
export async function showIndex(db: pg.Pool, { schema }: Deployment, viewsSchema: string): Promise<boolean> {
  if ((await shownSchema(db, viewsSchema)) === schema) return true;
  const [from, into] = [pg.escapeIdentifier(schema), pg.escapeIdentifier(viewsSchema)];
  const replace = async (client: Queryable): Promise<boolean> => {
    const namesOf = async (namespace: string, kinds: readonly string[]) => {
      const { rows } = await client.query<{ name: string }>(
        `select relname as name from pg_class where relnamespace = to_regnamespace($1) and relkind = any($2)
          and relname !~ '^_' order by relname`,
        [namespace, kinds],
      );
      return rows.map(({ name }) => pg.escapeIdentifier(name));
    };
    await client.query("select pg_advisory_xact_lock(hashtextextended('indexer.views ' || $1, 0))", [viewsSchema]);
    // A reader gives up after a second; it waits no longer than this for the views.
    await client.query("set local lock_timeout = '100ms'");
    for (const name of await namesOf(into, ["v"])) await client.query(`drop view ${into}.${name}`);
    for (const name of await namesOf(from, ["r", "v"]))
      await client.query(`create view ${into}.${name} as select * from ${from}.${name}`);
    return true;
  };
  return falseIfBusy(inTransaction(db, replace));
}

const READER = "trust_api";

/** Lets the API's role read the views, also those that are made again. They carry their own access to the rows. */
export async function openToReaders(db: pg.Pool, viewsSchema: string): Promise<void> {
  const views = pg.escapeIdentifier(viewsSchema);
  await db.query(`create schema if not exists ${views}`);
  if ((await db.query("select from pg_roles where rolname = $1", [READER])).rowCount === 0) return;
  await db.query(`grant usage on schema ${views} to ${READER};
    grant select on all tables in schema ${views} to ${READER};
    alter default privileges in schema ${views} grant select on tables to ${READER}`);
}

const ABANDONED_MS = 3_600_000;

/** Whether no Ponder has written to this index for an hour: it was replaced, or given up. */
export const isAbandoned = async (db: Queryable, { schema }: Deployment): Promise<boolean> =>
  !(await wasSeen(db, schema, { since: Date.now() - ABANDONED_MS, state: "true" }));

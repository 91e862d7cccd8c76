import pg from "pg";
import { inTransaction } from "../api/platform/db/connection.ts";
import { tryLock } from "./index-lock.ts";
import { type Deployment, exists, falseIfBusy, findIndexes, type Queryable } from "./schemas.ts";

// The views that show one index. Ponder's own views (--views-schema) would switch at each start, before the index has read the
// newest blocks.

export async function shownSchema(db: Queryable, viewsSchema: string): Promise<string | null> {
  const { rows } = await db.query<{ schema: string }>(
    "select table_schema as schema from information_schema.view_table_usage where view_schema = $1 and view_name = 'head'",
    [viewsSchema],
  );
  return rows[0]?.schema ?? null;
}

/** Returns whether a Ponder that wrote to this schema since `since` (by this machine's clock) has `state`. */
async function wasSeen(db: Queryable, schema: string, { since, state }: { since: number; state: string }) {
  const meta = `${pg.escapeIdentifier(schema)}._ponder_meta`;
  if (!(await exists(db, meta))) return false;
  const { rowCount } = await db.query(
    `select from ${meta} where key = 'app' and (value ->> 'heartbeat_at')::int8 >= $1 and ${state}`,
    [since],
  );
  return rowCount !== 0;
}

/** Returns whether a Ponder that took the index's lock since then has filled it. */
export const isReady = (db: Queryable, schema: string, since: number): Promise<boolean> =>
  wasSeen(db, schema, { since, state: "value ->> 'is_ready' = '1'" });

/** A tolerance, because the shown index continues to add blocks. */
const NEAR_BLOCKS = 5;

/**
 * Returns whether the views may show this index. They may if they show it already or show none, or if it has caught up with
 * the shown index and that one is not a newer index held by an indexer.
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
 * Makes the views show this index, in one short transaction, so that a statement reads either the previous index or this one.
 * Returns false if readers held locks. Try again then.
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
    // Readers give up after a second, so block them only briefly.
    await client.query("set local lock_timeout = '100ms'");
    for (const name of await namesOf(into, ["v"])) await client.query(`drop view ${into}.${name}`);
    for (const name of await namesOf(from, ["r", "v"]))
      await client.query(`create view ${into}.${name} as select * from ${from}.${name}`);
    return true;
  };
  return falseIfBusy(inTransaction(db, replace));
}

const READER = "trust_api";

/** Lets the API's role read the views, including recreated ones. A view reads its rows with its owner's privileges. */
export async function openToReaders(db: pg.Pool, viewsSchema: string): Promise<void> {
  const views = pg.escapeIdentifier(viewsSchema);
  await db.query(`create schema if not exists ${views}`);
  if ((await db.query("select from pg_roles where rolname = $1", [READER])).rowCount === 0) return;
  await db.query(`grant usage on schema ${views} to ${READER};
    grant select on all tables in schema ${views} to ${READER};
    alter default privileges in schema ${views} grant select on tables to ${READER}`);
}

const ABANDONED_MS = 3_600_000;

/** Returns whether an index was abandoned, because no Ponder has written to it for an hour. */
export const isAbandoned = async (db: Queryable, { schema }: Deployment): Promise<boolean> =>
  !(await wasSeen(db, schema, { since: Date.now() - ABANDONED_MS, state: "true" }));

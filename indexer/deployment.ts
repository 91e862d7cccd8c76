import { findPackageJSON } from "node:module";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { dropSchemas, isBusy, ponderSchemas, type Queryable } from "./schemas.ts";

/** Ponder considers a lock dead once its owner has not renewed it for this long. */
const LOCK_EXPIRES_MS = 25_000;

/** The path of Ponder's package.json. */
export function ponderPackage(): string {
  const path = findPackageJSON("ponder", import.meta.url);
  if (path === undefined) throw new Error("the ponder package is not installed: run npm install");
  return path;
}

/** One index: a Ponder schema named `<views schema>_<hash of what it is known by>_<start block>`. */
export interface Deployment {
  readonly schema: string;
  readonly startBlock: number;
}

/**
 * Lets the next process in at once. Only correct if the lock's owner is known to be gone; what a Ponder still has under way
 * whose launcher was killed ends first.
 */
export async function clearLock(db: pg.Pool, { schema }: Deployment): Promise<void> {
  if (!(await ponderSchemas(db)).includes(schema)) return;
  await endWriters(db, schema);
  await db.query(`update ${pg.escapeIdentifier(schema)}._ponder_meta set value = jsonb_set(value, '{is_locked}', '0')`);
}

/** A Ponder that has lost its launcher closes in six seconds at most. */
const CLOSES_MS = 10_000;
const LOOK_MS = 100;

/** Waits until nobody is connected to write this index, and ends the connections that are left of a machine that is gone. */
async function endWriters(db: pg.Pool, schema: string): Promise<void> {
  const writers = "from pg_stat_activity where datname = current_database() and application_name = any($1)";
  const names = [["internal", "user"].map((part) => `${schema}_${part}`)];
  for (const until = Date.now() + CLOSES_MS; Date.now() < until; await wait(LOOK_MS))
    if ((await db.query(`select ${writers}`, names)).rowCount === 0) return;
  await db.query(`select pg_terminate_backend(pid) ${writers}`, names);
}

/** Whether a process that has held the lock since `since` has filled the index and created the views. */
export async function isReady(db: Queryable, { schema }: Pick<Deployment, "schema">, since: number): Promise<boolean> {
  if (!(await ponderSchemas(db)).includes(schema)) return false;
  const { rowCount } = await db.query(
    `select from ${pg.escapeIdentifier(schema)}._ponder_meta
      where key = 'app' and value ->> 'is_ready' = '1' and (value ->> 'heartbeat_at')::bigint >= $1`,
    [since],
  );
  return rowCount === 1;
}

interface Replaced {
  /** What the names of the root's indexes begin with. */
  readonly prefix: string;
  readonly exclusive: boolean;
}

/** An index that is not ready was written by a process that is coming back, or that lives no more. */
const ABANDONED_MS = 3_600_000;

/**
 * Drops the indexes these views showed before. Nothing reads them, each holds up to 90 days of the chain, and going
 * back to one is a backfill. One that a process may still hold is left for the next start, and so is one in the making,
 * whose Ponder may just be starting again.
 */
export async function dropReplaced(
  db: pg.Pool,
  { prefix, exclusive }: Replaced,
  current: Deployment,
): Promise<readonly string[]> {
  const ours = new RegExp(`^${prefix}_[0-9a-f]{8}_[0-9]+$`);
  const dropped: string[] = [];
  for (const schema of await ponderSchemas(db)) {
    if (schema === current.schema || !ours.test(schema)) continue;
    if (!exclusive && ((await isHeld(db, schema)) || (await isInTheMaking(db, schema)))) continue;
    if (await dropUnlessBusy(db, schema)) dropped.push(schema);
  }
  return dropped;
}

/** False if somebody still reads it. */
export async function dropUnlessBusy(db: pg.Pool, schema: string): Promise<boolean> {
  try {
    await dropSchemas(db, [schema]);
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

/** Whether a process wrote this index within so many milliseconds, and what its Ponder says of itself has these members. */
async function wasWritten(
  db: Queryable,
  schema: string,
  { withinMs, says = {} }: { readonly withinMs: number; readonly says?: object },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from ${pg.escapeIdentifier(schema)}._ponder_meta
      where key = 'app' and (value ->> 'heartbeat_at')::bigint > $1 and value @> $2`,
    [Date.now() - withinMs, says],
  );
  return rowCount !== 0;
}

const isInTheMaking = (db: Queryable, schema: string): Promise<boolean> =>
  wasWritten(db, schema, { withinMs: ABANDONED_MS, says: { is_ready: 0 } });

/** Whether a process wrote this index just now, although it may have let go of its lock to start again. */
export const isKept = (db: Queryable, schema: string): Promise<boolean> =>
  wasWritten(db, schema, { withinMs: LOCK_EXPIRES_MS });

/** Whether a live process may be writing this index. */
export const isHeld = (db: Queryable, schema: string): Promise<boolean> =>
  wasWritten(db, schema, { withinMs: LOCK_EXPIRES_MS, says: { is_locked: 1 } });

const READER = "trust_api";

/**
 * Lets the API's role read the views, which carry their own access to the rows behind them. The default privilege makes
 * that true for views Ponder recreates, from the moment they exist.
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

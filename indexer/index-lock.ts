import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { sessionName } from "./holder.ts";
import type { Queryable } from "./schemas.ts";

/** The advisory lock of an index, by its name without the start block. */
const KEY = "hashtextextended('indexer ' || $1, 0)";

/** A session of its own that holds one index's lock. */
export interface IndexLock {
  /** Names this session and the connections of the Ponder that it starts. */
  readonly holder: string;
  /** Aborts when the session has ended, and the lock with it. */
  readonly lost: AbortSignal;
  /** Whatever only the holder may do goes through this session, so that it fails once the lock is lost. */
  readonly session: Queryable;
  readonly release: () => Promise<void>;
}

/** Takes an index's lock; null if another session has it. */
export async function takeLock(databaseUrl: string, index: string): Promise<IndexLock | null> {
  const holder = randomBytes(6).toString("hex");
  const session = new pg.Client({
    connectionString: databaseUrl,
    application_name: sessionName(holder),
    keepAlive: true,
    connectionTimeoutMillis: 10_000,
  });
  const lost = new AbortController();
  session.on("error", () => lost.abort()).on("end", () => lost.abort());
  await session.connect();
  const release = () => session.end().catch(() => undefined);
  try {
    const { rows } = await session.query<{ taken: boolean }>(`select pg_try_advisory_lock(${KEY}) as taken`, [index]);
    if (rows[0]?.taken === true) return { holder, lost: lost.signal, session, release };
  } catch (error) {
    await release();
    throw error;
  }
  await release();
  return null;
}

/** Takes an index's lock for the rest of a transaction; false if another session has it. */
export async function tryLock(db: Queryable, index: string): Promise<boolean> {
  const { rows } = await db.query<{ taken: boolean }>(`select pg_try_advisory_xact_lock(${KEY}) as taken`, [index]);
  return rows[0]?.taken === true;
}

/** Whether a session holds this index's lock. */
export async function isLocked(db: Queryable, index: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
      and (classid::int8 << 32) | objid::int8 = ${KEY}`,
    [index],
  );
  return rowCount !== 0;
}

const LOOK_MS = 20;

/**
 * Ends every connection of a Ponder that an earlier holder has started, and resolves when they are gone. It opens no other one:
 * each first asks whether its holder still has the lock.
 */
export async function endWriters({ holder, session }: IndexLock, schema: string): Promise<void> {
  const theirs = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name ^@ $1 and application_name <> $2`;
  const names = [`${schema} `, `${schema} ${holder}`];
  while ((await session.query(theirs, names)).rowCount !== 0) await wait(LOOK_MS);
}

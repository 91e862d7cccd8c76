import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import type { Queryable } from "./schemas.ts";

// The advisory lock of an index. Its key is the index's name without the start block.

const KEY = "hashtextextended('indexer ' || $1, 0)";

/** The application names of the session that holds the lock, and of the connections of its Ponder. */
export const sessionName = (holder: string): string => `indexer ${holder}`;
export const writerName = (schema: string, holder: string): string => `${schema} ${holder}`;

/** Returns a row while the session with this name ($1) holds an advisory lock. */
export const IS_HELD = `select from pg_locks join pg_stat_activity using (pid)
  where locktype = 'advisory' and granted and application_name = $1`;

export interface IndexLock {
  /** The id in the names of this session and of its Ponder's connections. */
  readonly holder: string;
  /** Aborts when the session, and so the lock, has ended. */
  readonly lost: AbortSignal;
  /** Run everything that requires the lock through this session, so that it fails once the lock is lost. */
  readonly session: Queryable;
  readonly release: () => Promise<void>;
}

async function tryTo(how: "lock" | "xact_lock", db: Queryable, index: string): Promise<boolean> {
  const { rows } = await db.query<{ taken: boolean }>(`select pg_try_advisory_${how}(${KEY}) as taken`, [index]);
  return rows[0]?.taken === true;
}

/** Takes an index's lock. Returns null if another session has it. */
export async function takeLock(databaseUrl: string, index: string): Promise<IndexLock | null> {
  const holder = randomBytes(6).toString("hex");
  const named = { application_name: sessionName(holder), keepAlive: true, connectionTimeoutMillis: 10_000 };
  const session = new pg.Client({ connectionString: databaseUrl, ...named });
  const lost = new AbortController();
  session.on("error", () => lost.abort()).on("end", () => lost.abort());
  await session.connect();
  const release = () => session.end().catch(() => undefined);
  let isTaken = false;
  try {
    isTaken = await tryTo("lock", session, index);
    return isTaken ? { holder, lost: lost.signal, session, release } : null;
  } finally {
    if (!isTaken) await release();
  }
}

/** Takes an index's lock for the rest of the transaction, or for one statement. Returns false if another session has it. */
export const tryLock = (db: Queryable, index: string): Promise<boolean> => tryTo("xact_lock", db, index);

/**
 * Ends every connection of a Ponder that an earlier holder started, and resolves when they are gone. Such a Ponder cannot
 * open another one, because each connection first checks that its holder still has the lock (ponder.config.ts).
 */
export async function endWriters({ holder, session }: IndexLock, schema: string): Promise<void> {
  const theirs = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name ^@ $1 and application_name <> $2`;
  const names = [writerName(schema, ""), writerName(schema, holder)];
  while ((await session.query(theirs, names)).rowCount !== 0) await wait(20);
}

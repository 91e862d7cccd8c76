import { randomInt } from "node:crypto";
import type pg from "pg";
import { named } from "./connection.ts";

/** An arbitrary number for the class of locks that show live processes. */
const CLASS = 7_402_404;

/**
 * SQL that is true if no live process has this owner number, because its connection has ended, and its lock with it.
 * The locks are read once, however many rows a statement checks. For a null owner the result is null.
 */
export const isGone = (owner: string): string => `${owner}::oid NOT IN (SELECT objid FROM pg_locks
  WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = ${CLASS})`;

const HOLD = `SELECT pg_try_advisory_lock(${CLASS}, $1) AS mine`;
const LET_GO = "SELECT pg_advisory_unlock_all()";

/** A process with work under way. */
export interface Present {
  readonly owner: number;
  leave(): void;
}

/**
 * Shows other processes that this one is alive while it has work under way. It holds a lock on one connection, which
 * ends with the process. All concurrent work shares the connection.
 */
export function createPresence(pool: pg.Pool): () => Promise<Present> {
  let shared: { readonly session: Promise<Session>; entered: number } | null = null;
  const begin = () => {
    const fresh = { session: hold(pool, () => (shared = shared === fresh ? null : shared)), entered: 0 };
    return fresh;
  };
  return async () => {
    shared ??= begin();
    const mine = shared;
    mine.entered++;
    const leave = () => {
      if (--mine.entered > 0) return;
      if (shared === mine) shared = null;
      void mine.session.then(({ end }) => end()).catch(() => undefined);
    };
    try {
      return { owner: (await mine.session).owner, leave };
    } catch (error) {
      leave();
      throw error;
    }
  };
}

interface Session {
  readonly owner: number;
  end(): Promise<void>;
}

/** @param hasBroken is called when the connection, and with it the lock, is lost */
async function hold(pool: pg.Pool, hasBroken: () => void): Promise<Session> {
  const client = await pool.connect();
  const owner = randomInt(1, 2 ** 31);
  const lost = () => hasBroken();
  client.once("error", lost);
  client.once("end", lost);
  const end = async (): Promise<void> => {
    client.off("error", lost);
    client.off("end", lost);
    await client.query(named(LET_GO, [])).then(
      () => client.release(),
      (error: Error) => client.release(error),
    );
  };
  try {
    const { rows } = await client.query<{ mine: boolean }>(named(HOLD, [owner]));
    if (rows[0]?.mine !== true) throw new Error("another process has the same presence number");
    return { owner, end };
  } catch (error) {
    await end();
    throw error;
  }
}

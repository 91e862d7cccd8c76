import { createHash } from "node:crypto";
import pg from "pg";
import type { Header } from "../api/platform/chain/log-answers.ts";
import { inTransaction } from "../api/platform/db/connection.ts";
import { expectRows, type History } from "./history/history.ts";
import { ROWS_VERSION } from "./history/rows.ts";
import { tryLock } from "./index-lock.ts";
import { WINDOW_BLOCKS } from "./ledger.ts";
import { type Deployment, falseIfBusy, findIndexes, ponderSchemas, type Queryable } from "./schemas.ts";
import type { IndexerSettings } from "./settings.ts";

/** Returns an index's name without its start block: a hash of everything that decides its rows, except the chain. */
export function nameOf(settings: IndexerSettings, history: History | null): string {
  const { viewsSchema, scope, startBlock, ownAddresses, escrows, escrowStartBlock } = settings;
  const followed = escrows.length === 0 ? [] : [escrows, escrowStartBlock];
  const key = JSON.stringify([ROWS_VERSION, scope, startBlock, history?.id ?? null, ownAddresses, followed]);
  return `${viewsSchema}_${createHash("sha256").update(key).digest("hex").slice(0, 8)}`;
}

/** The maximum age of a synced node's newest block. */
const SYNCED_SECONDS = 3_600;

interface Start extends Pick<IndexerSettings, "startBlock"> {
  readonly head: Pick<Header, "block" | "time">;
  readonly history: History | null;
}

/**
 * Returns the index of this name, or creates an empty one. The start block is chosen once and then read from the schema's
 * name, so a restart does not move it with the head.
 * @param session the session that holds the index's lock
 */
export async function chooseIndex(session: Queryable, index: string, start: Start): Promise<Deployment> {
  const found = (await findIndexes(session)).find((one) => one.index === index);
  if (found !== undefined) return found;
  const { head, history } = start;
  if (history !== null) await expectRows(session, history);
  const given = history?.firstBlock ?? start.startBlock;
  if (given === null && Date.now() / 1000 - head.time > SYNCED_SECONDS)
    throw new Error(
      `The node's newest block, ${head.block}, is over an hour old, so the start of the last 90 days is unknown. Wait until the node has synced, or set START_BLOCK`,
    );
  // Ponder never becomes ready from a start block above the head.
  const startBlock = Math.min(given ?? Math.max(0, head.block - WINDOW_BLOCKS), head.block);
  const schema = `${index}_${startBlock}`;
  await session.query(`create schema ${pg.escapeIdentifier(schema)}`);
  return { index, schema, startBlock };
}

/** While a drop waits for a reader, it blocks every later reader. */
const BRIEFLY = "set local lock_timeout = '2s'";

/** Drops an index. Returns false if an indexer holds it, or another session reads it. */
export const dropUnlessUsed = (db: pg.Pool, { index, schema }: Deployment): Promise<boolean> =>
  falseIfBusy(
    inTransaction(db, async (client) => {
      if (!(await tryLock(client, index))) return false;
      await client.query(`${BRIEFLY}; drop schema ${pg.escapeIdentifier(schema)} cascade`);
      return true;
    }),
  );

/**
 * Drops every index of this database, including one from a Ponder without a launcher, and Ponder's copy of the chain, in one
 * transaction. Preloaded histories stay.
 * @returns the dropped schemas
 * @throws if an indexer holds an index
 */
export const dropIndexes = (db: pg.Pool): Promise<readonly string[]> =>
  inTransaction(db, async (client) => {
    const indexes = await findIndexes(client);
    for (const { index, schema } of indexes)
      if (!(await tryLock(client, index))) throw new Error(`An indexer uses ${schema}. Stop it first.`);
    const made = new Set([...indexes.map(({ schema }) => schema), ...(await ponderSchemas(client))]);
    const schemas = [...made, "ponder_sync"];
    await client.query(BRIEFLY);
    for (const schema of schemas) await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
    return schemas;
  });

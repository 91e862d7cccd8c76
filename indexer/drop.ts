import pg from "pg";
import { tryLock } from "./index-lock.ts";
import { type Deployment, findIndexes, inTransaction, isBusy, ponderSchemas } from "./schemas.ts";

/** A drop waits no longer than this for what reads or writes a schema: meanwhile it holds back all who come after it. */
const LOCK_MS = 2_000;

/** Drops an index; false if an indexer holds it, or another session reads it. */
export async function dropUnlessUsed(db: pg.Pool, { index, schema }: Deployment): Promise<boolean> {
  try {
    return await inTransaction(db, async (client) => {
      if (!(await tryLock(client, index))) return false;
      await client.query(`set local lock_timeout = ${LOCK_MS}`);
      await client.query(`drop schema ${pg.escapeIdentifier(schema)} cascade`);
      return true;
    });
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

/**
 * Drops every index of this database, also that of a Ponder without a launcher, with Ponder's copy of the chain and all that is
 * remembered of it, all or none. Preloaded histories stay.
 * @returns what was dropped
 * @throws if an indexer holds one of them
 */
export async function dropIndexes(db: pg.Pool): Promise<readonly string[]> {
  return inTransaction(db, async (client) => {
    const indexes = await findIndexes(client);
    for (const { index, schema } of indexes)
      if (!(await tryLock(client, index))) throw new Error(`An indexer uses ${schema}. Stop it first.`);
    const made = new Set([...indexes.map(({ schema }) => schema), ...(await ponderSchemas(client))]);
    const schemas = [...made, "ponder_sync", "indexer"];
    await client.query(`set local lock_timeout = ${LOCK_MS}`);
    for (const schema of schemas) await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
    return schemas;
  });
}

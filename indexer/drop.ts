import pg from "pg";
import { inTransaction } from "../api/platform/db/connection.ts";
import { tryLock } from "./index-lock.ts";
import { type Deployment, falseIfBusy, findIndexes, ponderSchemas } from "./schemas.ts";

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

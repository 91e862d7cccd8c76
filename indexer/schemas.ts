import pg from "pg";

export type Queryable = Pick<pg.Client, "query">;

/** Runs `work` in one transaction, which its error takes back. */
export async function inTransaction<T>(db: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await db.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    client.release();
    return result;
  } catch (error) {
    // With the connection ends the transaction, whatever state it is in.
    client.release(true);
    throw error;
  }
}

/** The index whose name begins so and ends with its start block; null if there is none. */
export async function findSchema(
  db: Queryable,
  prefix: string,
): Promise<{ readonly schema: string; readonly startBlock: number } | null> {
  const { rows } = await db.query<{ schema: string; start: number }>(
    `select nspname as schema, substring(nspname from '[0-9]+$')::int as start
       from pg_namespace where nspname ~ $1 order by start limit 1`,
    [`^${prefix}_[0-9]+$`],
  );
  return rows[0] === undefined ? null : { schema: rows[0].schema, startBlock: rows[0].start };
}

/** Every schema a Ponder process has filled in this database; they all share `ponder_sync`. */
export async function ponderSchemas(db: Queryable): Promise<readonly string[]> {
  const { rows } = await db.query<{ schema: string }>(
    `select nspname as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relname = '_ponder_meta' and relkind = 'r' order by nspname`,
  );
  return rows.map(({ schema }) => schema);
}

/** A drop waits no longer than this for what reads or writes a schema: meanwhile it holds back all who come after it. */
const LOCK_MS = 2_000;

/** Drops these schemas, all or none. Rejects if somebody else has one of their tables for too long (`isBusy`). */
export async function dropSchemas(db: pg.Pool, schemas: readonly string[]): Promise<void> {
  await inTransaction(db, (client) => dropWithin(client, schemas));
}

async function dropWithin(client: pg.PoolClient, schemas: readonly string[]): Promise<void> {
  await client.query(`set local lock_timeout = ${LOCK_MS}`);
  for (const schema of schemas) await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
}

/** Whether somebody else has what was to be locked. */
export const isBusy = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && (error.code === "55P03" || error.code === "40P01");

/**
 * Drops every index of this database with Ponder's copy of the chain and what is remembered of it, all or none. Preloaded
 * histories stay.
 * @param expectUnused throws if somebody uses these indexes, and nothing is dropped; also asked once nobody can begin to
 * @returns what was dropped
 */
export async function dropIndexes(
  db: pg.Pool,
  expectUnused: (db: Queryable, indexes: readonly string[]) => Promise<void> = async () => undefined,
): Promise<readonly string[]> {
  return inTransaction(db, async (client) => {
    await client.query(`set local lock_timeout = ${LOCK_MS}`);
    const indexes = await ponderSchemas(client);
    await expectUnused(client, indexes);
    // Ponder begins by reading this table, and takes its lock there.
    for (const schema of indexes)
      await client.query(`lock table ${pg.escapeIdentifier(schema)}._ponder_meta in access exclusive mode`);
    await expectUnused(client, indexes);
    const schemas = [...indexes, ...(await begunSchemas(client)), "ponder_sync", "indexer"];
    await dropWithin(client, schemas);
    return schemas;
  });
}

/** Indexes that Ponder has not come to: the launcher had named them, and ended. */
async function begunSchemas(db: Queryable): Promise<readonly string[]> {
  const { rows } = await db.query<{ schema: string }>(
    `select nspname as schema from pg_namespace where nspname ~ '_[0-9a-f]{8}_[0-9]+$' and not exists
      (select from pg_class where relnamespace = pg_namespace.oid and relkind <> 'i' and relname <> 'own_address')
      order by 1`,
  );
  return rows.map(({ schema }) => schema);
}

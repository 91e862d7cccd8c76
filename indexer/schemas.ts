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

export async function dropSchemas(db: pg.Pool, schemas: readonly string[]): Promise<void> {
  for (const schema of schemas) await db.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
}

/**
 * Drops every index of this database with Ponder's copy of the chain and what is remembered of it. Preloaded histories
 * stay.
 * @returns what was dropped
 */
export async function dropIndexes(db: pg.Pool): Promise<readonly string[]> {
  const schemas = [...(await ponderSchemas(db)), "ponder_sync", "indexer"];
  await dropSchemas(db, schemas);
  return schemas;
}

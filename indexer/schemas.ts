import pg from "pg";

export type Queryable = Pick<pg.ClientBase, "query">;

/** One index: a Ponder schema named `<index>_<start block>`. */
export interface Deployment {
  /** `<views schema>_<hash>` (choose-index.ts). */
  readonly index: string;
  readonly schema: string;
  readonly startBlock: number;
}

/** Returns the indexes of these views, or of this database, oldest first, including an index that Ponder has not filled. */
export async function findIndexes(db: Queryable, viewsSchema = "[a-z][a-z0-9_]*"): Promise<readonly Deployment[]> {
  const { rows } = await db.query<{ schema: string }>(
    `select nspname as schema from pg_namespace n where nspname ~ $1
      and not exists (select from pg_class where relnamespace = n.oid and relname = 'history') order by oid`,
    [`^${viewsSchema}_[0-9a-f]{8}_[0-9]+$`],
  );
  return rows.map(({ schema }) => {
    const end = schema.lastIndexOf("_");
    return { index: schema.slice(0, end), schema, startBlock: Number(schema.slice(end + 1)) };
  });
}

/** Returns every schema that Ponder has filled in this database. They all share `ponder_sync`. */
export async function ponderSchemas(db: Queryable): Promise<readonly string[]> {
  const { rows } = await db.query<{ schema: string }>(
    `select nspname as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relname = '_ponder_meta' and relkind = 'r' order by nspname`,
  );
  return rows.map(({ schema }) => schema);
}

export async function exists(db: Queryable, table: string): Promise<boolean> {
  const { rows } = await db.query<{ exists: boolean }>("select to_regclass($1) is not null as exists", [table]);
  return rows[0]?.exists === true;
}

/** Whether PostgreSQL gave up waiting for another session's lock. */
export const isBusy = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && (error.code === "55P03" || error.code === "40P01");

export const falseIfBusy = (work: Promise<boolean>): Promise<boolean> =>
  work.catch((error: unknown) => {
    if (isBusy(error)) return false;
    throw error;
  });

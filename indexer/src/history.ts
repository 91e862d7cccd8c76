import type { Context } from "ponder:registry";
import { sql } from "ponder";
import { HISTORY_ID, HISTORY_SCHEMA, SCHEMA } from "../environment.ts";

/**
 * Moves a preloaded history's tables, with their keys, into the empty index, in constant time. The history has no rows
 * afterward. Use it only in `setup`, whose transaction also has the first checkpoint.
 * @throws if the history was recreated after the index had begun
 */
export async function takeOver(db: Context["db"]): Promise<void> {
  const history = sql.identifier(HISTORY_SCHEMA);
  // Ponder limits a statement to two minutes, but another transaction may be reading the history.
  await db.sql.execute(sql`select set_config('statement_timeout', '0', true)`);
  const id = sql<string>`id`;
  const [found] = await db.sql.select({ id }).from(sql`${history}.history`).for("share");
  if (found?.id !== HISTORY_ID)
    throw new Error(`the history "${HISTORY_SCHEMA}" was recreated after the index had begun`);
  const tables = await db.sql
    .select({ name: sql<string>`relname` })
    .from(sql`pg_class`)
    .where(sql`relnamespace = to_regnamespace(${HISTORY_SCHEMA}) and relkind = 'r' and relname <> 'history'`);
  for (const table of tables) {
    const name = sql.identifier(table.name);
    await db.sql.execute(sql`drop table ${sql.identifier(SCHEMA)}.${name}`);
    await db.sql.execute(sql`alter table ${history}.${name} set schema ${sql.identifier(SCHEMA)}`);
  }
}

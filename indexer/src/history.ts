import type { Context } from "ponder:registry";
import { sql } from "ponder";
import { HISTORY_ID, HISTORY_SCHEMA, SCHEMA } from "../environment.ts";

/**
 * Makes a preloaded history's tables those of the empty index, with their keys, which takes as long at any size. The history
 * has none afterwards. Only for `setup`, whose transaction also holds the first checkpoint.
 * @throws if the history has been made again since the index was begun for it
 */
export async function takeOver(db: Context["db"]): Promise<void> {
  const history = sql.identifier(HISTORY_SCHEMA);
  // Ponder allows a statement two minutes; another transaction may be reading the history.
  await db.sql.execute(sql`select set_config('statement_timeout', '0', true)`);
  const id = sql<string>`id`;
  const [found] = await db.sql.select({ id }).from(sql`${history}.history`).for("share");
  if (found?.id !== HISTORY_ID)
    throw new Error(`the history "${HISTORY_SCHEMA}" was made again after the index had begun`);
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

import type { Context } from "ponder:registry";
import { sql } from "ponder";
import { historyTables } from "../history/tables.ts";
import type { Scope } from "../ledger.ts";

/**
 * Makes a preloaded history's tables those of the empty index, with their keys, which takes as long at any size. The history
 * has none afterwards. Only for `setup`, whose transaction also holds the first checkpoint.
 * @param id the history's that the index was begun for
 * @throws if it has been made again since
 */
export async function takeOver(
  db: Context["db"],
  { history, id, index }: Record<"history" | "id" | "index", string>,
): Promise<void> {
  // Ponder allows a statement two minutes; another transaction may be reading the history.
  await db.sql.execute(sql`select set_config('statement_timeout', '0', true)`);
  const [found] = await db.sql
    .select({ id: sql<string>`id` })
    .from(sql`${sql.identifier(history)}.history`)
    .for("share");
  if (found?.id !== id) throw new Error(`the history "${history}" was made again after the index had begun`);
  for (const name of historyTables(process.env.INDEX_SCOPE as Scope)) {
    const empty = sql`${sql.identifier(index)}.${sql.identifier(name)}`;
    const full = sql`${sql.identifier(history)}.${sql.identifier(name)}`;
    await db.sql.execute(sql`drop table ${empty}`);
    await db.sql.execute(sql`alter table ${full} set schema ${sql.identifier(index)}`);
  }
}

import { int8, onchainTable, onchainView, sql } from "ponder";

// How far an index is. Each root has it.

/** A table of the index that is being made. */
export const ofIndex = (table: string) =>
  sql`${sql.identifier(process.env.INDEX_SCHEMA ?? "")}.${sql.identifier(table)}`;

/**
 * One row: the last block whose transfers are in the rows, written with each live block. A reorganization takes it back
 * with the rows; Ponder's own checkpoint stays at the block that was removed.
 */
export const head = onchainTable("head", (t) => ({
  id: t.integer().primaryKey(),
  block: t.int8({ mode: "number" }).notNull(),
  at: t.int8({ mode: "number" }).notNull(),
}));

/**
 * At most one row: the last block whose transfers are in the rows. A restart removes the blocks after the safe checkpoint
 * from them. Until Ponder is ready again the safe checkpoint is the correct one; then there is no row until Ponder has
 * reached the block that was the newest at its start.
 */
export const position = onchainView("position", {
  block: int8({ mode: "number" }).notNull(),
  at: int8({ mode: "number" }).notNull(),
}).as(sql`
  select coalesce(live.block, safe.block) as block, coalesce(live.at, safe.at) as at
  from (select value ->> 'is_ready' = '1' as is_ready from ${ofIndex("_ponder_meta")} where key = 'app') app
  cross join (select substr(safe_checkpoint, 27, 16)::int8 as block, left(safe_checkpoint, 10)::int8 as at
    from ${ofIndex("_ponder_checkpoint")}) safe
  left join ${ofIndex("head")} live on is_ready and live.block > safe.block
  where live.block is not null or not is_ready`);

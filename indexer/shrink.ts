import type pg from "pg";
import { inTransaction } from "./schemas.ts";

/** Ponder's tables that are pruned, in the order of their primary keys. */
const TABLES = {
  logs: "chain_id, block_number, log_index",
  transactions: "chain_id, block_number, transaction_index",
  blocks: "chain_id, number",
  rpc_request_results: "chain_id, request_hash",
} as const;
type Table = keyof typeof TABLES;

/** A table may be so many times as large as its rows, keys and page headers included, and this much more. */
const LOOSENESS = 1.6;
const SLACK_BYTES = 3 * 2 ** 20;
/** A row's header, its place in the page, its entry in the key. */
const ROW_BYTES = 80;
/** Copied while Ponder waits, in a few seconds. */
const MOST_BYTES = 2 ** 29;

/**
 * Lets what comes next use the space of the rows that were deleted, and gives space back where that would not do: after
 * the first sync, or after a day of many payments, most of a file is empty. Its rows are then copied out and in again,
 * found by their key, so that it takes as long as what is left is large, not what was deleted. Ponder waits meanwhile;
 * if it is in the middle of something itself, the next time will do.
 * @returns the tables that were written again
 */
export async function shrink(db: pg.Pool): Promise<readonly Table[]> {
  const tables = Object.keys(TABLES) as Table[];
  await db.query(`vacuum (analyze) ${tables.map((table) => `ponder_sync.${table}`).join()}`);
  const shrunk: Table[] = [];
  for (const table of tables) {
    const { rows } = await db.query<{ size: string; needed: string }>(
      `select pg_total_relation_size('ponder_sync.${table}') as size,
        coalesce(sum(pg_column_size(t.*) + ${ROW_BYTES}), 0) as needed from ponder_sync.${table} t`,
    );
    const [size, needed] = [Number(rows[0]?.size), Number(rows[0]?.needed)];
    if (needed > MOST_BYTES || size <= LOOSENESS * needed + SLACK_BYTES) continue;
    if (await rewrite(db, table)) shrunk.push(table);
  }
  return shrunk;
}

/** False if somebody else has the table. */
async function rewrite(db: pg.Pool, table: Table): Promise<boolean> {
  const [name, kept] = [`ponder_sync.${table}`, `kept_${table}`];
  const copied = await inTransaction(db, async (client) => {
    await client.query(`set local lock_timeout = '1s'; set local enable_seqscan = off`);
    await client.query(`lock table ${name} in access exclusive mode`);
    await client.query(`create temp table ${kept} on commit drop as select * from ${name} order by ${TABLES[table]}`);
    await client.query(`truncate ${name}`);
    await client.query(`insert into ${name} select * from ${kept}`);
    return true;
  }).catch((error: unknown) => {
    if (isLocked(error)) return false;
    throw error;
  });
  if (copied) await db.query(`analyze ${name}`);
  return copied;
}

/** Whether PostgreSQL gave up waiting for a lock. */
const isLocked = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "55P03";

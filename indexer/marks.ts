import pg from "pg";
import type { Hex, PublicClient } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import { readBlock } from "./chain.ts";
import { ponderSchemas, type Queryable } from "./schemas.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];
/** Base's blocks are final after about 450. */
const FINAL_AFTER_BLOCKS = 1_000;

/** A block as the index remembers it; one taken from a checkpoint has only a time. */
export interface Mark {
  readonly number: number;
  readonly hash: Hex | null;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** What a node says of a mark. `missing` says nothing of the chain: the node may be late, or keep no old blocks. */
export type Finding = "same" | "missing" | { readonly mark: Mark; readonly instead: Mark };

const MARKS = `create schema if not exists indexer;
  create table if not exists indexer.chain_mark
    (chain_id int8, number int8, hash text not null, time int8 not null, primary key (chain_id, number))`;

/** Remembers blocks that will never change: the chain's first and, once final, the index's first. */
export async function rememberMarks(
  db: pg.Pool,
  chain: PublicClient,
  { head, startBlock }: { readonly head: number; readonly startBlock: number },
): Promise<void> {
  await db.query(MARKS);
  const isFinal = startBlock + FINAL_AFTER_BLOCKS <= head;
  for (const number of new Set([0, ...(isFinal ? [startBlock] : [])])) {
    const [once, again] = [await readBlock(chain, number), await readBlock(chain, number)];
    if (once === null || again === null || once.hash !== again.hash) continue;
    await db.query("insert into indexer.chain_mark values ($1, $2, $3, $4) on conflict do nothing", [
      CHAIN_ID,
      number,
      once.hash,
      once.timestamp,
    ]);
  }
}

/** What the index and Ponder's copy of the chain remember: also of what a chain with this head may have replaced. */
export async function recordedMarks(db: pg.Pool, head: number): Promise<readonly Mark[]> {
  const synced = [await highestSyncedBlock(db, Number.MAX_SAFE_INTEGER), await highestSyncedBlock(db, head)];
  return [...(await rememberedMarks(db, head)), ...synced.flat(), ...(await finalizedMarks(db))];
}

/** Where each index permanently stands: Ponder refuses to go back before this. */
export async function finalizedMarks(db: Queryable): Promise<readonly Mark[]> {
  const marks: Mark[] = [];
  for (const schema of await ponderSchemas(db)) {
    const mark = await finalizedMark(db, schema);
    if (mark !== null) marks.push(mark);
  }
  return marks;
}

/** Where one index permanently stands; null if Ponder has not begun to fill it. */
export async function finalizedMark(db: Queryable, schema: string): Promise<Mark | null> {
  const table = `${pg.escapeIdentifier(schema)}._ponder_checkpoint`;
  if (!(await exists(db, table))) return null;
  const { rows } = await db.query<{ checkpoint: string }>(
    `select finalized_checkpoint as checkpoint from ${table} where chain_id = $1 order by 1 desc limit 1`,
    [CHAIN_ID],
  );
  const [row] = rows;
  return row === undefined ? null : { ...decodeCheckpoint(row.checkpoint), hash: null };
}

/** The last block that an index has in its rows, or had before they were taken back; null before the first. */
export async function reachedBlock(db: Queryable, schema: string): Promise<number | null> {
  if (!(await ponderSchemas(db)).includes(schema)) return null;
  const { rows } = await db.query<{ checkpoint: string }>(
    `select latest_checkpoint as checkpoint from ${pg.escapeIdentifier(schema)}._ponder_checkpoint where chain_id = $1`,
    [CHAIN_ID],
  );
  return rows[0] === undefined ? null : decodeCheckpoint(rows[0].checkpoint).number;
}

/** Compares a mark with the node's block of that number. Rejects if the node does not answer. */
export async function findOnChain(chain: PublicClient, mark: Mark): Promise<Finding> {
  const block = await readBlock(chain, mark.number);
  if (block === null) return "missing";
  const isSame = block.timestamp === mark.timestamp && (mark.hash === null || mark.hash === block.hash);
  return isSame ? "same" : { mark, instead: block };
}

/** Of those in the table the first two, the last one, and the last one that a chain with this head may have. */
async function rememberedMarks(db: Queryable, head: number): Promise<readonly Mark[]> {
  if (!(await exists(db, "indexer.chain_mark"))) return [];
  const marks = "select number, hash, time as timestamp from indexer.chain_mark where chain_id = $1";
  const few = `(${marks} order by number limit 2) union (${marks} order by number desc limit 1)
    union (${marks} and number <= $2 order by number desc limit 1)`;
  return marksIn(db, few, [head]);
}

async function highestSyncedBlock(db: Queryable, upTo: number): Promise<readonly Mark[]> {
  if (!(await exists(db, "ponder_sync.blocks"))) return [];
  const synced = "select number, hash, timestamp from ponder_sync.blocks where chain_id = $1 and number <= $2";
  return marksIn(db, `${synced} order by number desc limit 1`, [upTo]);
}

async function exists(db: Queryable, table: string): Promise<boolean> {
  const { rows } = await db.query("select to_regclass($1) is not null as exists", [table]);
  return rows[0]?.exists === true;
}

async function marksIn(db: Queryable, query: string, values: readonly number[]): Promise<readonly Mark[]> {
  const { rows } = await db.query<{ number: string; hash: Hex; timestamp: string }>(query, [CHAIN_ID, ...values]);
  return rows.map(({ number, hash, timestamp }) => ({ number: Number(number), hash, timestamp: Number(timestamp) }));
}

/** Ponder's checkpoint: 10 digits of Unix time, 16 of chain id, 16 of block number, then the place in the block. */
const decodeCheckpoint = (checkpoint: string) => ({
  timestamp: Number(checkpoint.slice(0, 10)),
  number: Number(checkpoint.slice(26, 42)),
});

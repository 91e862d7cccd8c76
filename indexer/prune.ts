import type pg from "pg";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import { finalizedMark } from "./marks.ts";
import { PRUNING, readPruned, writePruned } from "./pruned.ts";
import { inTransaction, ponderSchemas, type Queryable } from "./schemas.ts";
import { shrink } from "./shrink.ts";

const { chainId: CHAIN_ID, usdc } = NETWORKS[MAIN_NETWORK];

/** Twice what Base takes to finality. Ponder itself gives up after 30 blocks. */
const KEPT_BLOCKS = 1_000;
/** About a second of work, in which only rows are locked that Ponder no longer reads. */
const CHUNK_LOGS = 20_000;
/** What Ponder calls its tables that hang on a transaction. */
const OF_TRANSACTIONS = ["transactions", "transaction_receipts", "traces"] as const;

export interface Pruned {
  /** Nothing but what other contracts' logs refer to is left below this block; null if nothing was ever pruned. */
  readonly below: number | null;
  /** How many rows were deleted. */
  readonly rows: number;
  /** The index that is the furthest behind: nothing is pruned that it still needs. */
  readonly slowest: string | null;
  /** Tables that were written again, because deleting rows does not shrink a file. */
  readonly shrunk: readonly string[];
}

export interface PrunePlan {
  /** How many blocks stay behind the slowest index's last final one. */
  readonly keep?: number;
  /** Also looks below what is pruned already, where an interrupted start may have left something. */
  readonly isThorough?: boolean;
  /** Once aborted, ends after the statement it is at. */
  readonly signal?: AbortSignal;
}

/**
 * Deletes from Ponder's copy of the chain what no index needs any more: USDC's logs far behind where each index is final,
 * and the transactions, blocks and receipts that no other contract's log refers to. Each chunk says how far it went in
 * the transaction that deletes, and first remembers some blocks (`indexer.chain_mark`), so that a process which dies in
 * between leaves nothing that is not true. Ponder may run, and so may another launcher.
 * @param db of the role that owns the index
 * @throws if there is an index of which it is not known what it needs
 */
export async function prune(
  db: pg.Pool,
  { keep = KEPT_BLOCKS, isThorough = false, signal }: PrunePlan = {},
): Promise<Pruned> {
  let from = isThorough ? 0 : null;
  let [rows, done]: [number, Chunk | null] = [0, null];
  do {
    done = await inTransaction(db, (client) => pruneChunk(client, keep, from));
    from = done.to;
    rows += done.rows;
  } while (done.isMore && signal?.aborted !== true);
  rows += await deleteReceipts(db, done.to ?? 0);
  const shrunk = rows === 0 || signal?.aborted === true ? [] : await shrink(db);
  return { below: done.to, rows, slowest: done.slowest, shrunk };
}

interface Chunk {
  readonly to: number | null;
  readonly rows: number;
  readonly slowest: string | null;
  readonly isMore: boolean;
}

/** @param from null: where the last one ended */
async function pruneChunk(db: pg.PoolClient, keep: number, given: number | null): Promise<Chunk> {
  await db.query("set local lock_timeout = '2s'");
  const lock = await db.query(`select pg_try_advisory_xact_lock(${PRUNING}) as is_ours`);
  const isThere = await db.query(
    "select to_regclass('indexer.pruned') is not null and to_regclass('ponder_sync.logs') is not null as is_there",
  );
  const nothing = { to: null, rows: 0, slowest: null, isMore: false };
  if (lock.rows[0]?.is_ours !== true || isThere.rows[0]?.is_there !== true) return nothing;
  const below = await readPruned(db);
  const slowest = await slowestIndex(db);
  const end = (slowest?.block ?? 0) - keep;
  const from = given ?? below ?? 0;
  if (slowest === null || end <= from) return { ...nothing, to: below, slowest: slowest?.schema ?? null };
  const to = await endOfChunk(db, from, end);
  await rememberMarks(db, from, to);
  await writePruned(db, Math.max(to, below ?? 0));
  return { to, rows: await deleteBetween(db, from, to), slowest: slowest.schema, isMore: to < end };
}

interface Needs {
  readonly schema: string;
  readonly block: number;
}

/** The index that needs the oldest block. One that Ponder has not begun to fill needs its start, which is in its name. */
async function slowestIndex(db: Queryable): Promise<Needs | null> {
  const { rows } = await db.query<{ schema: string; start: string }>(
    "select nspname as schema, substring(nspname from '[0-9]+$') as start from pg_namespace where nspname ~ $1",
    [INDEX_NAME],
  );
  const stranger = (await ponderSchemas(db)).find((schema) => rows.every((row) => row.schema !== schema));
  if (stranger !== undefined)
    throw new Error(
      `${stranger} was made by Ponder, but not by the indexer: nobody knows what it needs of ponder_sync`,
    );
  let slowest: Needs | null = null;
  for (const { schema, start } of rows) {
    const block = (await finalizedMark(db, schema))?.number ?? Number(start);
    if (slowest === null || block < slowest.block) slowest = { schema, block };
  }
  return slowest;
}

const INDEX_NAME = "_[0-9a-f]{8}_[0-9]+$";

/** Where a chunk ends that begins at `from`: a block that has not more logs before it than may be deleted at once. */
async function endOfChunk(db: Queryable, from: number, end: number): Promise<number> {
  const { rows } = await db.query<{ number: string }>(
    `select block_number as number from ponder_sync.logs where chain_id = $1 and block_number >= $2 and block_number < $3
      order by block_number offset ${CHUNK_LOGS} limit 1`,
    [CHAIN_ID, from, end],
  );
  return rows[0] === undefined ? end : Math.max(from + 1, Number(rows[0].number));
}

/**
 * Remembers some of the blocks that will be deleted, because all that are left may be above a chain's head: the last one,
 * and the last of each hundredth or so of the way there. So of a chain that went back, one is known shortly below its head.
 */
async function rememberMarks(db: Queryable, from: number, to: number): Promise<void> {
  const grain = "greatest(0, floor(log(2, greatest(number, 1)))::int - 6)";
  await db.query(
    `insert into indexer.chain_mark select distinct on (${grain}, number >> ${grain}) chain_id, number, hash, timestamp
      from ponder_sync.blocks where chain_id = $1 and number >= $2 and number < $3
      order by ${grain}, number >> ${grain}, number desc on conflict do nothing`,
    [CHAIN_ID, from, to],
  );
}

/** Returns how many rows it has deleted. */
async function deleteBetween(db: Queryable, from: number, to: number): Promise<number> {
  const range = [CHAIN_ID, from, to];
  const within = (column: string) => `chain_id = $1 and ${column} >= $2 and ${column} < $3`;
  const logs = `select from ponder_sync.logs where ${within("block_number")}`;
  const deleted = [
    await db.query(`delete from ponder_sync.logs where ${within("block_number")} and address = $4`, [
      ...range,
      usdc.address.toLowerCase(),
    ]),
  ];
  for (const table of OF_TRANSACTIONS)
    deleted.push(
      await db.query(
        `delete from ponder_sync.${table} gone where ${within("block_number")} and not exists
          (${logs} and block_number = gone.block_number and transaction_index = gone.transaction_index)`,
        range,
      ),
    );
  deleted.push(
    await db.query(
      `delete from ponder_sync.blocks where ${within("number")} and not exists (${logs} and block_number = blocks.number)`,
      range,
    ),
    await db.query(`delete from ponder_sync.rpc_request_results where ${within("block_number")}`, range),
  );
  return deleted.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
}

const RECEIPTS_AT_ONCE = 5_000;
/** Ponder keeps the receipts that a handler asked for without their block's number, which stands in them. */
const RECEIPTS = `delete from ponder_sync.rpc_request_results where ctid = any(array(
  select ctid from ponder_sync.rpc_request_results where chain_id = $1 and block_number is null
    and ('x' || lpad(substring(result from '"blockNumber": ?"0x([0-9a-f]+)"'), 16, '0'))::bit(64)::int8 < $2
  limit ${RECEIPTS_AT_ONCE}))`;

/** What is missing of these is fetched again by who asks for it, so nothing has to be recorded. */
async function deleteReceipts(db: pg.Pool, below: number): Promise<number> {
  for (let rows = 0; ; ) {
    const { rowCount } = below > 0 ? await db.query(RECEIPTS, [CHAIN_ID, below]) : { rowCount: 0 };
    rows += rowCount ?? 0;
    if ((rowCount ?? 0) < RECEIPTS_AT_ONCE) return rows;
  }
}

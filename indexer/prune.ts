import type pg from "pg";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import { exists, finalizedMark, rememberBlocks } from "./same-chain.ts";
import { type Deployment, findIndexes, inTransaction, ponderSchemas, type Queryable } from "./schemas.ts";

const { chainId: CHAIN_ID, usdc } = NETWORKS[MAIN_NETWORK];
const USDC = usdc.address.toLowerCase();

/** Twice what Base takes to finality. Ponder itself gives up after 30 blocks. */
const KEPT_BLOCKS = 1_000;
/** About a second of work, in which only rows are locked that Ponder no longer reads. */
const CHUNK_LOGS = 20_000;

/** Pruning, and the choice of what is to be fetched again, exclude each other. */
const PRUNING = "select pg_advisory_xact_lock(hashtextextended('indexer.pruning', 0))";

export interface Pruned {
  readonly rows: number;
  /** USDC's logs below this block are gone; null if it is not known what the indexes need. */
  readonly below: number | null;
  /** The index that is the furthest behind. */
  readonly slowest: string | null;
}

/**
 * Deletes from Ponder's copy of the chain what no index needs any more: USDC's logs more than `keep` blocks behind the last
 * final block of the index that is the furthest behind, the oldest first, and the transactions, blocks and receipts to which
 * no other contract's log refers. Ponder may run.
 * @param db of the role that owns the index
 * @param signal once aborted, this ends after the step that it is at
 */
export async function prune(db: pg.Pool, keep = KEPT_BLOCKS, signal?: AbortSignal): Promise<Pruned> {
  let [rows, done] = [0, await inTransaction(db, (client) => pruneStep(client, keep))];
  rows += done.rows;
  while (done.isMore && signal?.aborted !== true) {
    done = await inTransaction(db, (client) => pruneStep(client, keep));
    rows += done.rows;
  }
  if (rows > 0) await db.query("vacuum ponder_sync.logs, ponder_sync.transactions, ponder_sync.blocks");
  return { rows, below: done.below, slowest: done.slowest };
}

async function pruneStep(db: Queryable, keep: number): Promise<Pruned & { readonly isMore: boolean }> {
  await db.query(`set local lock_timeout = '2s'; ${PRUNING}`);
  const slowest = (await exists(db, "ponder_sync.logs")) ? await slowestIndex(db) : null;
  if (slowest === null) return { rows: 0, below: null, slowest: null, isMore: false };
  const end = Math.max(0, slowest.block - keep);
  const { rows: next } = await db.query<{ number: string }>(
    `select block_number as number from ponder_sync.logs where chain_id = $1 and block_number < $2 and address = $3
      order by block_number offset ${CHUNK_LOGS} limit 1`,
    [CHAIN_ID, end, USDC],
  );
  // Whole blocks only: what is asked for again is counted in blocks.
  const below = next[0] === undefined ? end : Number(next[0].number) + 1;
  await rememberBlocks(db, below);
  const rows = await deleteBelow(db, below);
  return { rows, below, slowest: slowest.schema, isMore: below < end };
}

/** The index that needs the oldest block: from where it is final, or from its start if Ponder has not begun to fill it. */
async function slowestIndex(db: Queryable): Promise<{ readonly schema: string; readonly block: number } | null> {
  const starts = new Map((await findIndexes(db)).map(({ schema, startBlock }) => [schema, startBlock]));
  const others = (await ponderSchemas(db)).filter((schema) => !starts.has(schema));
  let slowest: { readonly schema: string; readonly block: number } | null = null;
  for (const schema of [...starts.keys(), ...others]) {
    const block = (await finalizedMark(db, schema))?.number ?? starts.get(schema) ?? 0;
    if (slowest === null || block < slowest.block) slowest = { schema, block };
  }
  return slowest;
}

/** @returns how many rows it has deleted */
async function deleteBelow(db: Queryable, below: number): Promise<number> {
  const remove = async (table: string, condition: string, ...more: unknown[]) =>
    (
      await db.query(`delete from ponder_sync.${table} gone where chain_id = $1 and ${condition}`, [
        CHAIN_ID,
        below,
        ...more,
      ])
    ).rowCount ?? 0;
  const logs = "not exists (select from ponder_sync.logs l where l.chain_id = gone.chain_id and l.block_number";
  let rows = await remove("logs", "block_number < $2 and address = $3", USDC);
  for (const table of ["transactions", "transaction_receipts", "traces"])
    rows += await remove(
      table,
      `block_number < $2 and ${logs} = gone.block_number and l.transaction_index = gone.transaction_index)`,
    );
  rows += await remove("blocks", `number < $2 and ${logs} = gone.number)`);
  // A handler's questions have no block's number, or that of the block that it handled; it asks again if it must.
  return rows + (await remove("rpc_request_results", "coalesce(block_number, 0) < $2"));
}

/**
 * What Ponder believes to have of USDC, without the blocks from one to another (exclusive), so that it fetches them again.
 * Ponder reads closed ranges that end one block late: a cut that left an open end, or a single number, would be something else
 * to it. Other contracts' logs are never pruned. A fragment of no contract is one of blocks, or of all contracts.
 */
const FORGET = `update ponder_sync.intervals set blocks = coalesce(
    (select range_agg(part) from unnest(blocks - nummultirange(numrange($2, $3, '()'))) part
      where lower(part) < upper(part)), '{}')
  where chain_id = $1
    and (fragment_id !~ '^log_[0-9]+_0x' or fragment_id ~* '^log_[0-9]+_${USDC}_')`;

/**
 * Before Ponder starts to fill an index: makes it fetch what has been pruned of the blocks that the index needs. Ponder would
 * take the intervals for the rows, and the index would lack those blocks without a sign. What was pruned ends with USDC's
 * oldest log, because the oldest are deleted first.
 * @param session of the index's lock
 * @param syncFrom the block from which the index reads USDC's logs
 */
export async function refetchPruned(session: Queryable, { schema }: Deployment, syncFrom: number): Promise<void> {
  if (!(await exists(session, "ponder_sync.intervals")) || (await finalizedMark(session, schema)) !== null) return;
  await session.query("begin");
  try {
    await session.query(PRUNING);
    const { rows } = await session.query<{ number: string }>(
      `select block_number as number from ponder_sync.logs where chain_id = $1 and address = $2
        order by block_number limit 1`,
      [CHAIN_ID, USDC],
    );
    const oldest = rows[0] === undefined ? null : Number(rows[0].number);
    if (oldest === null || oldest > syncFrom) await session.query(FORGET, [CHAIN_ID, syncFrom, oldest]);
    await session.query("commit");
  } catch (error) {
    await session.query("rollback");
    throw error;
  }
}

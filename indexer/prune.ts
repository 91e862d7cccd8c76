import type pg from "pg";
import { inTransaction } from "../api/platform/db/connection.ts";
import { CHAIN_ID, USDC } from "./ledger.ts";
import { finalizedMark } from "./same-chain.ts";
import { type Deployment, exists, findIndexes, ponderSchemas, type Queryable } from "./schemas.ts";

/** Twice the blocks that Base takes to finality. Ponder itself treats a block as final after 30. */
const KEPT_BLOCKS = 1_000;
/** About a second of work. It locks only rows that Ponder no longer reads. */
const STEP_LOGS = 20_000;

/** A lock, so that pruning and `refetchPruned` do not run at the same time. */
const PRUNING = "select pg_advisory_xact_lock(hashtextextended('indexer.pruning', 0))";

/**
 * Deletes data that no index needs from Ponder's copy of the chain, oldest first, in one bounded step: USDC's logs more than
 * `keep` blocks behind the last final block of the slowest index, and the transactions, blocks, and receipts to which no
 * other contract's log refers. Ponder may be running.
 * @param db a pool of the role that owns the index
 * @returns the block below which USDC's logs are gone, the slowest index, and whether there is more to delete
 */
export const prune = (db: pg.Pool, keep = KEPT_BLOCKS) =>
  inTransaction(db, async (client) => {
    await client.query(`set local lock_timeout = '2s'; ${PRUNING}`);
    const slowest = (await exists(client, "ponder_sync.logs")) ? await slowestIndex(client) : undefined;
    if (slowest === undefined) return { rows: 0, below: null, slowest: null, isMore: false };
    const end = Math.max(0, slowest.block - keep);
    const { rows: next } = await client.query<{ number: string }>(
      `select block_number as number from ponder_sync.logs where chain_id = $1 and block_number < $2 and address = $3
        order by block_number offset ${STEP_LOGS} limit 1`,
      [CHAIN_ID, end, USDC],
    );
    // Delete whole blocks only, because Ponder fetches whole blocks again.
    const below = next[0] === undefined ? end : Number(next[0].number) + 1;
    return { rows: await deleteBelow(client, below), below, slowest: slowest.schema, isMore: below < end };
  });

/** Returns the index that needs the oldest block: its last final block, or its start if Ponder has not begun to fill it. */
async function slowestIndex(db: Queryable) {
  const starts = new Map((await findIndexes(db)).map(({ schema, startBlock }) => [schema, startBlock]));
  const schemas = [...new Set([...starts.keys(), ...(await ponderSchemas(db))])];
  const all: { readonly schema: string; readonly block: number }[] = [];
  for (const schema of schemas)
    all.push({ schema, block: (await finalizedMark(db, schema))?.block ?? starts.get(schema) ?? 0 });
  return all.toSorted((a, b) => a.block - b.block)[0];
}

async function deleteBelow(db: Queryable, below: number): Promise<number> {
  const unused = (number: string) =>
    `${number} < $2 and not exists (select from ponder_sync.logs l where l.chain_id = gone.chain_id and l.block_number = ${number}`;
  const ofTransaction = `${unused("gone.block_number")} and l.transaction_index = gone.transaction_index)`;
  const conditions = {
    logs: `block_number < $2 and address = '${USDC}'`,
    transactions: ofTransaction,
    transaction_receipts: ofTransaction,
    traces: ofTransaction,
    blocks: `${unused("gone.number")})`,
    // A handler's RPC results have no block number, or the number of the handled block. Ponder repeats a request if needed.
    rpc_request_results: "coalesce(block_number, 0) < $2",
  };
  let rows = 0;
  for (const [table, condition] of Object.entries(conditions)) {
    const remove = `delete from ponder_sync.${table} gone where chain_id = $1 and ${condition}`;
    rows += (await db.query(remove, [CHAIN_ID, below])).rowCount ?? 0;
  }
  return rows;
}

/**
 * Makes Ponder refetch pruned blocks that an index needs. Call it before Ponder starts to fill the index, because Ponder
 * trusts its list of fetched intervals. Pruned blocks are those before USDC's oldest log, because the oldest are deleted
 * first; other contracts' logs are never pruned. A fragment without a contract is for blocks or for all contracts. Ponder
 * reads closed ranges that end one block late, so the cut must not leave an open end or a single number.
 * @param session the session that holds the index's lock
 * @param syncFrom the block from which the index reads USDC's logs
 */
export async function refetchPruned(session: Queryable, { schema }: Deployment, syncFrom: number): Promise<void> {
  if (!(await exists(session, "ponder_sync.intervals")) || (await finalizedMark(session, schema)) !== null) return;
  // Both statements run in one transaction.
  await session.query(`${PRUNING};
    update ponder_sync.intervals set blocks = coalesce(
      (select range_agg(part) from unnest(blocks - nummultirange(numrange(${syncFrom}, oldest, '()'))) part
        where lower(part) < upper(part)), '{}')
    from (select min(block_number) as oldest from ponder_sync.logs where chain_id = ${CHAIN_ID} and address = '${USDC}') logs
    where chain_id = ${CHAIN_ID} and coalesce(oldest > ${syncFrom}, true)
      and (fragment_id !~ '^log_[0-9]+_0x' or fragment_id ~* '^log_[0-9]+_${USDC}_')`);
}

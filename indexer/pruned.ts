import type pg from "pg";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import type { Deployment } from "./deployment.ts";
import { finalizedMark } from "./marks.ts";
import { inTransaction, type Queryable } from "./schemas.ts";

const { chainId: CHAIN_ID, usdc } = NETWORKS[MAIN_NETWORK];

const TABLE = `create schema if not exists indexer;
  create table if not exists indexer.pruned (chain_id int8 primary key, below int8 not null)`;

/** Pruning, and what has to be true while nobody prunes, exclude each other. */
export const PRUNING = "hashtext('indexer.pruned')";

/**
 * Below this block Ponder's copy of the chain has been pruned, although `ponder_sync.intervals` says that it is there;
 * from it on the intervals are true. Null if nothing was ever pruned.
 */
export async function readPruned(db: Queryable): Promise<number | null> {
  const { rows } = await db.query<{ below: string }>("select below from indexer.pruned where chain_id = $1", [
    CHAIN_ID,
  ]);
  return rows[0] === undefined ? null : Number(rows[0].below);
}

/** Says so, in the transaction that makes it true. */
export async function writePruned(db: Queryable, below: number): Promise<void> {
  const one = "insert into indexer.pruned values ($1, $2) on conflict (chain_id) do update set below = excluded.below";
  await db.query(one, [CHAIN_ID, below]);
}

/**
 * USDC's intervals without those from one block to another (exclusive), so that Ponder fetches them again. Ponder reads
 * closed ranges that end one block late: a cut that left an open end, or a single number, would be something else to it.
 * Other contracts' logs are never pruned. A fragment of none stands for blocks, or for all contracts.
 */
const CUT = `update ponder_sync.intervals set blocks = coalesce(
    (select range_agg(part) from unnest(blocks - nummultirange(numrange($2, $3, '()'))) part
      where lower(part) < upper(part)), '{}')
  where chain_id = $1
    and (fragment_id !~ '^log_[0-9]+_0x' or fragment_id ~* '^log_[0-9]+_${usdc.address}_')`;

/**
 * Before Ponder starts: makes it fetch again what this index needs and what has been pruned. Ponder would take the
 * intervals for the rows, and an index that starts below `indexer.pruned` would lack them without a sign. An index that
 * is already final there needs nothing.
 * @param syncFrom the block from which a new index reads transfers
 * @returns the blocks that will be fetched again, the last one exclusive; null if there are none
 */
export async function refetchPruned(
  db: pg.Pool,
  { schema }: Pick<Deployment, "schema">,
  syncFrom: number,
): Promise<readonly [number, number] | null> {
  await db.query(TABLE);
  return inTransaction(db, async (client) => {
    await client.query(`select pg_advisory_xact_lock(${PRUNING})`);
    const below = await readPruned(client);
    const needed = (await finalizedMark(client, schema))?.number ?? syncFrom;
    if (below === null || needed >= below) return null;
    const { rows } = await client.query("select to_regclass('ponder_sync.intervals') is not null as exists");
    if (rows[0]?.exists === true) await client.query(CUT, [CHAIN_ID, needed, below]);
    await writePruned(client, needed);
    return [needed, below];
  });
}

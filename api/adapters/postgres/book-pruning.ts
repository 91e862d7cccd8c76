import type pg from "pg";

/** So many are deleted in one statement: it never holds anyone up. */
const PRUNED_TOGETHER = 1_000;
/** Of Base's blocks, 30 days. The books of decoys are never read again from more than an hour before their position. */
const KEPT_BLOCKS = 1_296_000;

/** Only the day's own gas is ever asked for. */
const PRUNE_GAS = `DELETE FROM escrow_gas WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM escrow_gas WHERE day < (now() AT TIME ZONE 'UTC')::date - 7 LIMIT ${PRUNED_TOGETHER}))`;

/** They keep what is read once more from being booked twice; the sums are in `decoy_debt`. */
const PRUNE_TRANSFERS = `DELETE FROM decoy_transfer WHERE ctid = ANY(ARRAY(
    SELECT t.ctid FROM decoy_watch w JOIN decoy_transfer t USING (chain)
    WHERE t.block_number < w.next_block - ${KEPT_BLOCKS} LIMIT ${PRUNED_TOGETHER}))`;

/** Deletes some of what the books no longer need; returns how many rows, 0 when there are no more. */
export const createBookPruning = (pool: pg.Pool) => async (): Promise<number> => {
  const gas = await pool.query({ name: "escrow-gas-prune", text: PRUNE_GAS });
  const transfers = await pool.query({ name: "decoy-transfer-prune", text: PRUNE_TRANSFERS });
  return (gas.rowCount ?? 0) + (transfers.rowCount ?? 0);
};

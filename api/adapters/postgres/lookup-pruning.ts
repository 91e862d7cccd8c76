import type pg from "pg";

/** So many are deleted in one statement: it never holds anyone up. What somebody is writing is left for the next time. */
const PRUNED_TOGETHER = 1_000;

/** What was read for a wallet that nobody asks for is read again, should somebody ask. */
const PRUNE_INFLOWS = `DELETE FROM inflow WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM inflow WHERE used_at < now() - interval '30 days' AND claimed_until < now() LIMIT ${PRUNED_TOGETHER} FOR UPDATE SKIP LOCKED))`;

/** They serve for an hour. */
const PRUNE_LOOKUPS = `DELETE FROM score_lookup WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM score_lookup WHERE made_at < now() - interval '1 day' LIMIT ${PRUNED_TOGETHER} FOR UPDATE SKIP LOCKED))`;

/** A block without a mark gets another one when it is asked for. */
const PRUNE_MARKS = `DELETE FROM lookup_mark WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM lookup_mark WHERE seen_at < now() - interval '30 days' LIMIT ${PRUNED_TOGETHER} FOR UPDATE SKIP LOCKED))`;

/** Only the hour's own requests are ever asked for. */
const PRUNE_BUDGET = `DELETE FROM lookup_budget WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM lookup_budget WHERE hour < floor(extract(epoch FROM now()) / 3600)::int - 24 LIMIT ${PRUNED_TOGETHER} FOR UPDATE SKIP LOCKED))`;

const STATEMENTS = [
  { name: "inflow-prune", text: PRUNE_INFLOWS },
  { name: "score-lookup-prune", text: PRUNE_LOOKUPS },
  { name: "lookup-mark-prune", text: PRUNE_MARKS },
  { name: "lookup-budget-prune", text: PRUNE_BUDGET },
];

/** Deletes some of what the score's look-ups no longer need; returns how many rows, 0 when there are no more. */
export const createLookupPruning = (pool: pg.Pool) => async (): Promise<number> => {
  let pruned = 0;
  for (const statement of STATEMENTS) pruned += (await pool.query(statement)).rowCount ?? 0;
  return pruned;
};

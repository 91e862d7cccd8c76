import type pg from "pg";
import { change } from "./connection.ts";

/** The most rows that one statement deletes: it never holds anyone up. */
const PRUNED_TOGETHER = 1_000;

/** Of Base's blocks, 30 days. The books of decoys are never read again from more than an hour before their position. */
const KEPT_BLOCKS = 1_296_000;

/** Rows that are no longer needed, each after `FROM`. What somebody is writing is left for the next time. */
const OUTDATED = [
  // Only the day's own gas is ever asked for.
  "escrow_gas t WHERE day < (now() AT TIME ZONE 'UTC')::date - 7",
  // What was read for a wallet that nobody asks for is read again, should somebody ask.
  "inflow t WHERE used_at < now() - interval '30 days' AND claimed_until < now()",
  // They serve for an hour.
  "score_lookup t WHERE made_at < now() - interval '1 day'",
  // A block without a mark gets another one when it is asked for.
  "lookup_mark t WHERE seen_at < now() - interval '30 days'",
  // Only the hour's own requests are ever asked for.
  "lookup_budget t WHERE hour < floor(extract(epoch FROM now()) / 3600)::int - 24",
  // A minute that is over counts for nothing.
  "request_count t WHERE until < now() - interval '1 minute'",
  // Opened and never paid for.
  "seller_exam_open t WHERE until < now() - interval '1 min'",
  // A rehearsal is over after an hour.
  "rehearsal_session t WHERE started_at < now() - interval '7 days'",
  "seller_rehearsal t WHERE ordered_at < now() - interval '1 day'",
  "seller_probe t WHERE at < now() - interval '1 hour'",
];

/** The same of tables whose rows never change. */
const OUTDATED_FACTS = [
  // Transfers are kept so that what is read once more is not booked twice; the sums are in `decoy_debt`.
  `decoy_transfer t JOIN decoy_watch w USING (chain) WHERE t.block_number < w.next_block - ${KEPT_BLOCKS}`,
  // The nonces that a process may still take are younger: it refuses those of more than five minutes ago.
  "sign_in t WHERE nonce < decode(lpad(to_hex(floor(extract(epoch FROM now() - interval '1 h') * 1000)::bigint), 12, '0'), 'hex')",
];

const some = (from: string, lock = ""): string =>
  `DELETE FROM ${from.split(" ", 1)[0]} WHERE ctid = ANY(ARRAY(SELECT t.ctid FROM ${from} LIMIT ${PRUNED_TOGETHER} ${lock}))`;

/** Each deletes some rows of one table that are no longer needed; returns how many, 0 when there are no more. */
export const createPrunings = (pool: pg.Pool): readonly (() => Promise<number>)[] =>
  [
    ...OUTDATED.map((from) => some(from, "FOR UPDATE OF t SKIP LOCKED")),
    ...OUTDATED_FACTS.map((from) => some(from)),
  ].map((text) => () => change(pool, text));

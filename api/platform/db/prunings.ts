import type pg from "pg";
import { change } from "./connection.ts";

/** The most rows that one statement deletes, so that it does not block others. */
const PRUNED_TOGETHER = 1_000;

/**
 * 30 days of Base's blocks. The records of decoys are never read again from more than an hour before their position.
 */
const KEPT_BLOCKS = 1_296_000;

/** Rows that are no longer needed, each after `FROM`. Locked rows are left for the next time. */
const OUTDATED = [
  // Only today's gas is ever read.
  "escrow_gas t WHERE day < (now() AT TIME ZONE 'UTC')::date - 7",
  // The inflows of a wallet that is not looked up for a month are read again if they are needed.
  "inflow t WHERE used_at < now() - interval '30 days' AND claimed_until < now()",
  // A look-up is served for an hour.
  "score_lookup t WHERE made_at < now() - interval '1 day'",
  // A block without a mark gets a new one when it is needed.
  "lookup_mark t WHERE seen_at < now() - interval '30 days'",
  // Only this hour's requests are ever read.
  "lookup_budget t WHERE hour < floor(extract(epoch FROM now()) / 3600)::int - 24",
  // A minute that is over no longer counts.
  "request_count t WHERE until < now() - interval '1 minute'",
  // Opened and never paid for.
  "seller_exam_open t WHERE until < now() - interval '1 min'",
  // A rehearsal ends after an hour.
  "rehearsal_session t WHERE started_at < now() - interval '7 days'",
  "seller_rehearsal t WHERE ordered_at < now() - interval '1 day'",
  "seller_probe t WHERE at < now() - interval '1 hour'",
];

/** The same for tables whose rows never change. */
const OUTDATED_FACTS = [
  // Transfers are kept so that a repeated read does not book them twice. Their sums are in `decoy_debt`.
  `decoy_transfer t JOIN decoy_watch w USING (chain) WHERE t.block_number < w.next_block - ${KEPT_BLOCKS}`,
  // A process accepts only nonces of the last five minutes, so older ones need no record.
  "sign_in t WHERE nonce < decode(lpad(to_hex(floor(extract(epoch FROM now() - interval '1 h') * 1000)::bigint), 12, '0'), 'hex')",
];

const some = (from: string, lock = ""): string =>
  `DELETE FROM ${from.split(" ", 1)[0]} WHERE ctid = ANY(ARRAY(SELECT t.ctid FROM ${from} LIMIT ${PRUNED_TOGETHER} ${lock}))`;

/**
 * Returns functions that each delete a batch of one table's outdated rows, and return their number; 0 when there are no
 * more.
 */
export const createPrunings = (pool: pg.Pool): readonly (() => Promise<number>)[] =>
  [
    ...OUTDATED.map((from) => some(from, "FOR UPDATE OF t SKIP LOCKED")),
    ...OUTDATED_FACTS.map((from) => some(from)),
  ].map((text) => () => change(pool, text));

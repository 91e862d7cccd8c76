import type pg from "pg";
import type { Journal } from "../journal.ts";
import { bytes, change, named } from "../../platform/db/connection.ts";
import {
  ACTIVE,
  keyValues,
  LOOK_LATER,
  PARKED,
  type PaymentColumns,
  parsePayment,
  UNFINISHED_COLUMNS,
} from "./payment-row.ts";

/** Parked rows that one claim takes along: they must not hide the others. */
const PARKED_TOGETHER = 16;
/** A chain may take an hour to finalise; everything else moves within minutes, or not at all. */
const WITHOUT_PROGRESS = `moved_at < now() - CASE state WHEN 'fulfilled' THEN interval '2 h' ELSE interval '10 min' END`;

const duePart = (condition: string, limit: string) => `ARRAY(
    SELECT ctid FROM payment WHERE ${condition} AND look_at <= now() AND lease_until < now()
    ORDER BY look_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)`;

/** One statement, so that two processes never claim the same row. Its own way back into the journal is `look_at`. */
const CLAIM = `UPDATE payment SET look_at = now() + CASE WHEN parked_at IS NULL THEN interval '30 s' ELSE interval '1 h' END,
    parked_at = CASE WHEN parked_at IS NULL AND ${WITHOUT_PROGRESS} THEN now() ELSE parked_at END
  WHERE ctid = ANY(${duePart(ACTIVE, "$1")} || ${duePart(PARKED, String(PARKED_TOGETHER))})
  RETURNING ${UNFINISHED_COLUMNS}`;

const columns = (rows: readonly (readonly unknown[])[]): unknown[][] =>
  (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));

/** What the resolver asks of the journal. */
export function createResolving(pool: pg.Pool): Pick<Journal, "due" | "postpone" | "finalise"> {
  return {
    async due(limit) {
      const { rows } = await pool.query<PaymentColumns>(named(CLAIM, [limit]));
      return rows.map(parsePayment);
    },

    async postpone(keys) {
      await change(
        pool,
        `UPDATE payment SET look_at = ${LOOK_LATER}
        WHERE (chain, asset, payer, nonce) IN (SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[])) AND state = 'fulfilled'`,
        columns(keys.map(keyValues)),
      );
    },

    finalise: (settled) =>
      change(
        pool,
        `UPDATE payment SET final_at = now(), sealed = NULL, lease_token = NULL
        WHERE (chain, asset, payer, nonce, block_hash)
            IN (SELECT * FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]))
          AND state = 'fulfilled' AND final_at IS NULL AND lease_until < now()`,
        columns(settled.map(({ key, settlement }) => [...keyValues(key), bytes(settlement.blockHash)])),
      ),
  };
}

import type pg from "pg";
import type { PaymentKey } from "../../platform/http/route.ts";
import { type Entered, type InFlight, MOST_FAILED, MOST_IN_FLIGHT } from "../journal.ts";
import { hex, named } from "../../platform/db/connection.ts";
import { KEY, keyValues, LEASE, lockOrder } from "./payment-row.ts";
import type { Share } from "../../platform/db/shared-messages.ts";

/**
 * A statement by which a payment comes to be in flight. `entry.place` orders the payments of one payer, which enter one
 * after the other; null: too many are in flight, or have failed.
 */
export const entry = (statement: string): string => `WITH
  entry AS MATERIALIZED (SELECT place, barred_seconds FROM admit_payment($3::bytea, ${MOST_IN_FLIGHT}, ${MOST_FAILED})),
  entered AS (${statement} RETURNING 1)
  SELECT (SELECT count(*)::int FROM entered) AS rows, place IS NULL AS crowded, barred_seconds FROM entry`;

export interface EntryColumns {
  readonly rows: number;
  readonly crowded: boolean;
  readonly barred_seconds: number | null;
}

export function entered({ rows: [entry] }: pg.QueryResult<EntryColumns>): Entered {
  if (typeof entry?.barred_seconds === "number") return { barredSeconds: entry.barred_seconds };
  return entry?.crowded ? "crowded" : (entry?.rows ?? 0);
}

const TAKE =
  entry(`UPDATE payment SET lease_token = $5, lease_until = now() + ${LEASE}, takes = takes + 1, entered = place FROM entry
  WHERE ${KEY} AND state = 'received' AND lease_until < now() AND place IS NOT NULL`);

/** Takes an abandoned payment that was received. */
export const takeOf = (key: PaymentKey, token: string): pg.QueryConfig => named(TAKE, [...keyValues(key), token]);

const BEFORE = `SELECT nonce, value FROM payment
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce <> $4
    AND (state = 'settling' OR (state = 'received' AND lease_until > now()))
    AND entered < (SELECT entered FROM payment WHERE ${KEY})`;

export async function inFlightBefore(share: Share, key: PaymentKey): Promise<readonly InFlight[]> {
  const { rows } = await share<{ nonce: Buffer; value: string }>(named(BEFORE, keyValues(key)), lockOrder(key));
  return rows.map(({ nonce, value }) => ({ nonce: hex(nonce), value: BigInt(value) }));
}

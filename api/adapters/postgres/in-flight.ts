import type pg from "pg";
import type { PaymentKey } from "../../kernel/route.ts";
import { type Entered, type InFlight, MOST_IN_FLIGHT } from "../../payments/journal.ts";
import { hex } from "./connection.ts";
import { KEY, keyValues, LEASE } from "./payment-row.ts";

/**
 * A statement by which a payment comes to be in flight. `entry.place` orders the payments of one payer, which enter one
 * after the other; null: too many are in flight.
 */
export const entry = (statement: string): string => `WITH
  entry AS MATERIALIZED (SELECT enter_payment($3::bytea, ${MOST_IN_FLIGHT}) AS place),
  entered AS (${statement} RETURNING 1)
  SELECT (SELECT count(*)::int FROM entered) AS rows, (SELECT place IS NULL FROM entry) AS crowded`;

export async function entering(pool: pg.Pool, statement: pg.QueryConfig): Promise<Entered> {
  const { rows } = await pool.query<{ rows: number; crowded: boolean }>(statement);
  const [entered] = rows;
  return entered?.crowded ? "crowded" : (entered?.rows ?? 0);
}

const TAKE =
  entry(`UPDATE payment SET lease_token = $5, lease_until = now() + ${LEASE}, takes = takes + 1, entered = place FROM entry
  WHERE ${KEY} AND state = 'received' AND lease_until < now() AND place IS NOT NULL`);

/** Takes an abandoned payment that was received. */
export const takeOf = (key: PaymentKey, token: string): pg.QueryConfig => ({
  name: "payment-take-received",
  text: TAKE,
  values: [...keyValues(key), token],
});

export async function inFlightBefore(pool: pg.Pool, key: PaymentKey): Promise<readonly InFlight[]> {
  const { rows } = await pool.query<{ nonce: Buffer; value: string }>({
    name: "payment-in-flight-before",
    text: `SELECT nonce, value FROM payment
      WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce <> $4
        AND (state = 'settling' OR (state = 'received' AND lease_until > now()))
        AND entered < (SELECT entered FROM payment WHERE ${KEY})`,
    values: keyValues(key),
  });
  return rows.map(({ nonce, value }) => ({ nonce: hex(nonce), value: BigInt(value) }));
}

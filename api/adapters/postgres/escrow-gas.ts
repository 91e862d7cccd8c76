import type pg from "pg";
import type { Cost } from "../../escrow/escrow-ports.ts";

/** The day, in UTC, that an account's gas counts for. */
const TODAY = "(now() AT TIME ZONE 'UTC')::date";

/**
 * Puts the gas $2 on the account $1 of the day, which has a row then. Changes nothing when that would be more than $3, or
 * when the payment $4 has a task already.
 */
export const CHARGE = `INSERT INTO escrow_gas AS account SELECT $1::bytea, ${TODAY}, greatest(0, $2::bigint)
    WHERE $2::bigint <= greatest(0, $3::bigint) AND NOT EXISTS (SELECT FROM escrow_task WHERE payment = $4::bytea)
    ON CONFLICT (account, day) DO UPDATE SET gas = greatest(0, account.gas + $2::bigint)
    WHERE $2::bigint <= 0 OR account.gas + $2::bigint <= $3::bigint`;

/** Takes gas off an account of the day. It is never less than zero. */
export async function giveBack(client: pg.PoolClient, account: Buffer, gas: Cost["gas"]): Promise<void> {
  await client.query(
    `UPDATE escrow_gas SET gas = greatest(0, gas - $2::bigint) WHERE account = $1 AND day = ${TODAY}`,
    [account, String(gas)],
  );
}

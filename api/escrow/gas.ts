import type pg from "pg";
import type { Cost } from "./escrow-ports.ts";

/** The account of holds that nobody decided, whose parties anybody can make up. */
export const NOBODY = Buffer.alloc(20);

/** Accounts are locked in this order, then tasks. */
export const accountOrder = (account: Buffer, payment: Buffer): string =>
  `account ${Buffer.concat([account, payment]).toString("hex")}`;

/** The day, in UTC, that an account's gas counts for. */
const TODAY = "(now() AT TIME ZONE 'UTC')::date";

/** The day that the account of an outcome was charged on. */
const DAY_CHARGED = "(task.created_at AT TIME ZONE 'UTC')::date";

/**
 * Puts the gas $2 on the account $1 of the day, which has a row then. Changes nothing when that would be more than $3, or
 * when the payment $4 has a task already.
 */
export const CHARGE = `INSERT INTO escrow_gas AS account SELECT $1::bytea, ${TODAY}, greatest(0, $2::bigint)
    WHERE $2::bigint <= greatest(0, $3::bigint) AND NOT EXISTS (SELECT FROM escrow_task WHERE payment = $4::bytea)
    ON CONFLICT (account, day) DO UPDATE SET gas = greatest(0, account.gas + $2::bigint)
    WHERE $2::bigint <= 0 OR account.gas + $2::bigint <= $3::bigint`;

/** Takes gas off the account of the payment's merchant, on the day on which it was charged. It is never less than zero. */
export async function giveBack(client: pg.PoolClient, payment: Buffer, gas: Cost["gas"]): Promise<void> {
  await client.query(
    `UPDATE escrow_gas AS account SET gas = greatest(0, account.gas - $2::bigint) FROM escrow_task AS task
     WHERE task.payment = $1 AND account.account = task.merchant AND account.day = ${DAY_CHARGED}`,
    [payment, String(gas)],
  );
}

/**
 * Notes what ended the open task $1, and gives back to the account $6, on the day on which it was charged, what the outcome
 * took less than the gas $7. Mined again after a reorganization, it gives back the rest at most.
 */
export const MINED = `WITH task AS (UPDATE escrow_task AS task
    SET state = 'mined', found = $2, tx = $3, block_number = $4, block_hash = $5, look_at = now(),
      gas = least(task.gas, $7::bigint)
    FROM escrow_task AS before WHERE task.payment = $1 AND task.state = 'open' AND before.payment = task.payment
    RETURNING before.gas - task.gas AS surplus, ${DAY_CHARGED} AS day)
  UPDATE escrow_gas AS account SET gas = greatest(0, account.gas - surplus) FROM task
  WHERE account.account = $6 AND account.day = task.day AND surplus > 0`;

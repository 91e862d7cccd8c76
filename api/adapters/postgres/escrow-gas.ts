import type pg from "pg";
import type { Cost } from "../../escrow/escrow-ports.ts";

/** One row for each account and day. Nothing is changed when the gas is spent. */
const CHARGE = `INSERT INTO escrow_gas AS account SELECT $1, (now() AT TIME ZONE 'UTC')::date, greatest(0, $2::bigint)
  WHERE $2::bigint <= greatest(0, $3::bigint)
  ON CONFLICT (account, day) DO UPDATE SET gas = greatest(0, account.gas + $2::bigint)
  WHERE $2::bigint <= 0 OR account.gas + $2::bigint <= $3::bigint`;

/** Puts gas on an account of the day; false, and nothing is put on it, if it would be more than the most. */
export async function charge(client: pg.PoolClient, account: Buffer, { gas, most }: Cost): Promise<boolean> {
  const { rowCount } = await client.query(CHARGE, [account, String(gas), String(most)]);
  return rowCount !== 0;
}

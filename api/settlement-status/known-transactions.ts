import type pg from "pg";
import { NETWORKS } from "../platform/networks.ts";
import type { KnownTransaction } from "./authorization-reader.ts";
import { hex } from "../platform/db/connection.ts";
import { KEY, keyValues } from "../payments/journal/payment-row.ts";

/** Where our own payments settled, as the journal has it. */
export const createKnownTransactions =
  (pool: pg.Pool): KnownTransaction =>
  async (network, { from: payer, nonce }) => {
    const { rows } = await pool.query<{ tx: Buffer | null }>({
      name: "payment-transaction",
      text: `SELECT tx FROM payment WHERE ${KEY}`,
      values: keyValues({ network, asset: NETWORKS[network].usdc.address, payer, nonce }),
    });
    const tx = rows[0]?.tx ?? null;
    return tx === null ? null : hex(tx);
  };

import type pg from "pg";
import { networkOfChain } from "../../platform/networks.ts";
import type { Receipts } from "../receipt.ts";
import { bytes, hex } from "../../platform/db/connection.ts";

interface Columns {
  chain: number;
  tx: Buffer;
  block_number: string;
  final: boolean;
  payer: Buffer;
  pay_to: Buffer;
  value: string;
  route: string;
  location: string | null;
}

export const createReceipts = (pool: pg.Pool): Receipts => ({
  async byTransaction(transaction) {
    const { rows } = await pool.query<Columns>({
      name: "receipt",
      text: `SELECT chain, tx, block_number, final_at IS NOT NULL AS final, payer, pay_to, value, route, location
        FROM payment WHERE tx = $1 AND state IN ('settled', 'fulfilled') ORDER BY log_index`,
      values: [bytes(transaction)],
    });
    return rows.map((r) => ({
      network: networkOfChain(r.chain),
      transaction: hex(r.tx),
      block: Number(r.block_number),
      final: r.final,
      payer: hex(r.payer),
      payTo: hex(r.pay_to),
      value: BigInt(r.value),
      route: r.route,
      location: r.location,
    }));
  },
});

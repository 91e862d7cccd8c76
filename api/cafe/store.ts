import type pg from "pg";
import { bytes, type Transaction } from "../platform/db/connection.ts";
import type { Address } from "../platform/wallet.ts";
import { ROUND_RECEIPTS } from "./menu.ts";
import type { Toast } from "./receipt.ts";

export type CafeStore = ReturnType<typeof createCafeStore>;

export function createCafeStore(pool: pg.Pool) {
  return {
    serve,
    /** Returns rounds with receipts left, oldest first. */
    async openRounds(limit: number): Promise<readonly OpenRound[]> {
      const { rows } = await pool.query<OpenRound>(
        "SELECT nickname, receipts_left AS left FROM cafe_round WHERE receipts_left > 0 ORDER BY id LIMIT $1",
        [limit],
      );
      return rows;
    },
    async served(): Promise<number> {
      const { rows } = await pool.query<{ count: string }>("SELECT count(*) FROM cafe_receipt");
      return Number(rows[0]?.count ?? 0);
    },
  };
}

/**
 * Stores a receipt, counts it against the oldest open round of another wallet, and opens the buyer's own round. An
 * existing receipt is returned unchanged.
 */
async function serve({ id, payer, round, write }: ServedOrder, transaction: Transaction): Promise<string> {
  const { rows } = await transaction.query<{ document: string }>("SELECT document FROM cafe_receipt WHERE id = $1", [
    id,
  ]);
  if (rows[0]) return rows[0].document;
  const document = write(await toastFor(transaction, payer));
  await transaction.query("INSERT INTO cafe_receipt (id, document) VALUES ($1, $2)", [id, document]);
  if (round !== null)
    await transaction.query(
      "INSERT INTO cafe_round (receipt, payer, nickname, receipts_left) VALUES ($1, $2, $3, $4)",
      [id, bytes(payer), round.nickname, ROUND_RECEIPTS],
    );
  return document;
}

/** Takes one receipt from the oldest open round of another wallet. Concurrent orders wait for the row. */
async function toastFor(transaction: Transaction, payer: string): Promise<Toast | null> {
  const { rows } = await transaction.query<{ nickname: string; receipts_left: number }>(
    `UPDATE cafe_round SET receipts_left = receipts_left - 1 WHERE id = (
       SELECT id FROM cafe_round WHERE receipts_left > 0 AND payer <> $1 ORDER BY id LIMIT 1 FOR UPDATE
     ) RETURNING nickname, receipts_left`,
    [bytes(payer)],
  );
  const [taken] = rows;
  return taken ? { nickname: taken.nickname, number: ROUND_RECEIPTS - taken.receipts_left } : null;
}

interface ServedOrder {
  readonly id: string;
  readonly payer: Address;
  /** The nickname of a round's buyer; null for other items. */
  readonly round: { readonly nickname: string } | null;
  /** Writes the receipt, with the round that covers it, if any. */
  readonly write: (toast: Toast | null) => string;
}

export interface OpenRound {
  readonly nickname: string;
  readonly left: number;
}

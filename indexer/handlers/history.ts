import type { Context } from "ponder:registry";
import { paid, pair, payeeSlot, payerFunder, wallet, walletDay } from "ponder:schema";
import { sql } from "ponder";
import { HISTORY_TABLES, type HistoryTable, keyColumns } from "../history/tables.ts";

const TABLES = {
  wallet_day: walletDay,
  pair,
  wallet,
  paid,
  payee_slot: payeeSlot,
  payer_funder: payerFunder,
} satisfies Readonly<Record<HistoryTable, unknown>>;

/**
 * Copies a preloaded history into the empty index. Only for `setup`, whose transaction also holds the first checkpoint.
 */
export async function takeOver(db: Context["db"], history: string): Promise<void> {
  // Ponder allows a statement two minutes.
  await db.sql.execute(sql`select set_config('statement_timeout', '0', true)`);
  for (const name of Object.keys(TABLES) as HistoryTable[]) {
    const columns = sql.raw(HISTORY_TABLES[name].join());
    const rows = sql`${sql.identifier(history)}.${sql.identifier(name)}`;
    const key = sql.raw(keyColumns(name).join());
    await db.sql.execute(sql`insert into ${TABLES[name]} (${columns}) select ${columns} from ${rows} order by ${key}`);
  }
}

import { FLOOR_ATOMIC, PAYEE_SLOTS, QUALIFYING_ATOMIC, WINDOW_DAYS } from "../ledger.ts";

/** The tables a history fills, as in ponder.schema.ts: their columns, key columns first. */
export const HISTORY_TABLES = {
  wallet_day: ["wallet", "day", "paid", "qualifying", "qualifying_atomic", "touched", "ages", "last_at"],
  pair: ["low", "high", "last_day", "up_atomic", "down_atomic"],
  wallet: [
    ...["wallet", "funder", "funder_atomic", "last_paid_at", "last_paid_transaction"],
    ...["payees", "payers", "payer_funders", "unfunded_payers"],
  ],
  paid: ["payer", "payee", "count", "atomic", "unpaid_atomic", "first_at", "last_at", "last_transaction", "funder"],
  payee_slot: ["payer", "slot", "payee", "ordinal"],
  payer_funder: ["payee", "funder"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type HistoryTable = keyof typeof HISTORY_TABLES;

/** How many of a table's first columns are its key. */
export const keyColumns = (table: HistoryTable): readonly string[] =>
  HISTORY_TABLES[table].slice(0, table === "wallet" ? 1 : 2);

/** What the rows follow from besides the transfers: a history that another release made by other rules is rejected. */
export const HISTORY_RULES = JSON.stringify({
  ...{ version: 2, window: WINDOW_DAYS, slots: PAYEE_SLOTS, tables: HISTORY_TABLES },
  ...{ floor: String(FLOOR_ATOMIC), qualifying: String(QUALIFYING_ATOMIC) },
});

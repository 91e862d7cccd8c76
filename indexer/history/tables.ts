import columns from "../columns.json" with { type: "json" };
import { ROWS_VERSION } from "../rows-version.ts";

/** The tables a history fills, as in ../tables.ts: their columns, key columns first. */
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

/** The statement that creates a table in the search path, without its key, with the types that Ponder gives it. */
export function createTable(table: HistoryTable): string {
  const described = new Map(columns[table].map((column) => [column.split(" ")[0], column.replace(/ key \d$/, "")]));
  return `create table ${table} (${HISTORY_TABLES[table].map((name) => described.get(name)).join()})`;
}

/** A history whose rows have another number is rejected. */
export const HISTORY_RULES = String(ROWS_VERSION);

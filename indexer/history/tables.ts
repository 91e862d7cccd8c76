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

const NUMBERS = new Set(
  ["day", "last_day", "paid", "qualifying", "touched", "payees", "payers", "payer_funders", "unfunded_payers"].concat(
    ...["count", "slot", "ordinal"],
  ),
);
const NULLABLE = new Set(["ages", "last_paid_at", "last_paid_transaction"]);

/** PostgreSQL's type of a column, as Ponder makes it. */
function typeOf(column: string): string {
  if (NUMBERS.has(column)) return "integer";
  if (/(^|_)atomic$/.test(column)) return "numeric(78,0)";
  return column.endsWith("_at") ? "bigint" : "text";
}

/** The statement that creates a table in the search path, without its key. */
export function createTable(table: HistoryTable): string {
  const key = keyColumns(table);
  const isNullable = (column: string) => NULLABLE.has(column) || (column === "funder" && !key.includes(column));
  const columns = HISTORY_TABLES[table].map(
    (column) => `${column} ${typeOf(column)}${isNullable(column) ? "" : " not null"}`,
  );
  return `create table ${table} (${columns.join()})`;
}

/** What the rows follow from besides the transfers: a history that another release made by other rules is rejected. */
export const HISTORY_RULES = JSON.stringify({
  ...{ version: 3, window: WINDOW_DAYS, slots: PAYEE_SLOTS, tables: HISTORY_TABLES },
  ...{ floor: String(FLOOR_ATOMIC), qualifying: String(QUALIFYING_ATOMIC) },
});

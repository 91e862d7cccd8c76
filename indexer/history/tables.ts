import { columnsOf } from "../columns.ts";
import type { Scope } from "../ledger.ts";
import { ROWS_VERSION } from "../rows-version.ts";

/** The tables a history fills, as in ../tables.ts and ../payer-tables.ts: their columns in Ponder's order. */
export const HISTORY_TABLES = {
  wallet_day: ["last_at", "day", "paid", "qualifying", "touched", "wallet", "qualifying_atomic", "ages"],
  pair: ["last_day", "low", "high", "up_atomic", "down_atomic"],
  wallet: [
    ...["last_paid_at", "payees", "payers", "payer_funders", "unfunded_payers"],
    ...["wallet", "last_paid_transaction", "funder", "funder_atomic"],
  ],
  paid: [
    ...["first_at", "last_at", "count", "met_day", "payer", "payee", "last_transaction"],
    ...["atomic", "unpaid_atomic", "funder"],
  ],
  payee_slot: ["slot", "ordinal", "payer", "payee"],
  payer_funder: ["payee", "funder"],
  payer_slot: ["payee", "slot", "payer", "ordinal"],
  floor_block: ["payer", "payee", "block"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type HistoryTable = keyof typeof HISTORY_TABLES;

/** Those that an index of this scope has. */
export const historyTables = (scope: Scope): readonly HistoryTable[] => {
  const there = columnsOf(scope);
  return (Object.keys(HISTORY_TABLES) as HistoryTable[]).filter((table) => table in there);
};

const ALL_COLUMNS = columnsOf("selective");

/** The columns of a table's key, in its order. */
export const keyColumns = (table: HistoryTable): readonly string[] =>
  (ALL_COLUMNS[table] ?? [])
    .flatMap((column) => {
      const [, name = "", place] = /^(\S+) .* key (\d)$/.exec(column) ?? [];
      return place === undefined ? [] : [{ name, place }];
    })
    .toSorted((a, b) => Number(a.place) - Number(b.place))
    .map(({ name }) => name);

/** The statement that creates a table in the search path, without its key, with the types that Ponder gives it. */
export function createTable(table: HistoryTable): string {
  const described = new Map(
    ALL_COLUMNS[table]?.map((column) => [column.split(" ")[0], column.replace(/ key \d$/, "")]),
  );
  return `create table ${table} (${HISTORY_TABLES[table].map((name) => described.get(name)).join()})`;
}

/** A history whose rows have another number is rejected. */
export const HISTORY_RULES = String(ROWS_VERSION);

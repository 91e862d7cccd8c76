import type { Scope } from "../ledger.ts";

/**
 * The tables that a history fills, and their keys. They are those of ../tables.ts, with the columns in Ponder's order, because
 * the index takes them over as they are. A type with `?` may be null.
 */
const DEFINITIONS = {
  wallet_day: {
    columns: `last_at bigint, day integer, paid integer, qualifying integer, touched integer, wallet bytea,
      qualifying_atomic numeric(78,0), ages bytea?`,
    key: ["wallet", "day"],
  },
  pair: {
    columns: "last_day integer, low bytea, high bytea, up_atomic numeric(78,0), down_atomic numeric(78,0)",
    key: ["low", "high"],
  },
  wallet: {
    columns: `last_paid_at bigint?, payees integer, payers integer, payer_funders integer, unfunded_payers integer, wallet bytea,
      last_paid_transaction bytea?, funder bytea?, funder_atomic numeric(78,0)`,
    key: ["wallet"],
  },
  paid: {
    columns: `first_at bigint, last_at bigint, count integer, met_day integer?, payer bytea, payee bytea,
      last_transaction bytea, atomic numeric(78,0), unpaid_atomic numeric(78,0), funder bytea?`,
    key: ["payer", "payee"],
  },
  payee_slot: { columns: "slot integer, ordinal integer, payer bytea, payee bytea", key: ["payer", "slot"] },
  payer_funder: { columns: "payee bytea, funder bytea", key: ["payee", "funder"] },
  payer_slot: { columns: "payee bytea, slot integer, payer bytea, ordinal integer", key: ["payee", "slot"] },
  floor_block: { columns: "payer bytea, payee bytea, block bigint", key: ["payer", "payee"] },
} as const;

export type HistoryTable = keyof typeof DEFINITIONS;

const ALL = Object.keys(DEFINITIONS) as HistoryTable[];
const ONLY_SELECTIVE: readonly HistoryTable[] = ["payer_slot", "floor_block"];

/** The tables that an index of this scope has. */
export const historyTables = (scope: Scope): readonly HistoryTable[] =>
  scope === "selective" ? ALL : ALL.filter((table) => !ONLY_SELECTIVE.includes(table));

const columnsOf = (table: HistoryTable): readonly (readonly [name: string, type: string])[] =>
  DEFINITIONS[table].columns.split(/,\s+/).map((column) => column.split(" ") as [string, string]);

/** The names of each table's columns. */
export const HISTORY_TABLES = Object.fromEntries(
  ALL.map((table): [string, readonly string[]] => [table, columnsOf(table).map(([name]) => name)]),
) as Readonly<Record<HistoryTable, readonly string[]>>;

/** The columns of a table's primary key, in its order. */
export const keyColumns = (table: HistoryTable): readonly string[] => DEFINITIONS[table].key;

/** Creates a table in the search path. Its key is added after its rows. */
export const createTable = (table: HistoryTable): string =>
  `create table ${table} (${columnsOf(table).map(([name, type]) => (type.endsWith("?") ? `${name} ${type.slice(0, -1)}` : `${name} ${type} not null`))})`;

/** A query's rows of this table as PostgreSQL reads them from a CSV file. */
export const asCsvRows = (table: HistoryTable, query: string): string =>
  `select ${columnsOf(table).map(([name, type]) => (type.startsWith("bytea") ? `'\\x' || hex(${name})` : name))} from (${query})`;

import type { Scope } from "../ledger.ts";

/**
 * The tables that a history fills, and their keys: as in ../ponder.schema.ts, because the index takes them over. A type with
 * `?` may be null.
 */
const DEFINITIONS = {
  wallet_day: [
    "wallet, day",
    "last_at bigint, day integer, paid integer, qualifying integer, touched integer, wallet bytea, qualifying_atomic numeric(78,0), ages bytea?",
  ],
  pair: ["low, high", "last_day integer, low bytea, high bytea, up_atomic numeric(78,0), down_atomic numeric(78,0)"],
  wallet: [
    "wallet",
    `last_paid_at bigint?, payees integer, payers integer, payer_funders integer, unfunded_payers integer, wallet bytea,
      last_paid_transaction bytea?, funder bytea?, funder_atomic numeric(78,0)`,
  ],
  paid: [
    "payer, payee",
    `first_at bigint, last_at bigint, count integer, met_day integer?, payer bytea, payee bytea, last_transaction bytea,
      atomic numeric(78,0), unpaid_atomic numeric(78,0), funder bytea?`,
  ],
  payee_slot: ["payer, slot", "slot integer, ordinal integer, payer bytea, payee bytea"],
  payer_funder: ["payee, funder", "payee bytea, funder bytea"],
  payer_slot: ["payee, slot", "payee bytea, slot integer, payer bytea, ordinal integer"],
  floor_block: ["payer, payee", "payer bytea, payee bytea, block bigint"],
} as const;

export type HistoryTable = keyof typeof DEFINITIONS;

const ALL = Object.keys(DEFINITIONS) as HistoryTable[];
const ONLY_SELECTIVE: readonly HistoryTable[] = ["payer_slot", "floor_block"];

/** The tables that an index of this scope has. */
export const historyTables = (scope: Scope): readonly HistoryTable[] =>
  scope === "selective" ? ALL : ALL.filter((table) => !ONLY_SELECTIVE.includes(table));

const columnsOf = (table: HistoryTable): readonly (readonly [name: string, type: string])[] =>
  DEFINITIONS[table][1].split(/,\s+/).map((column) => column.split(" ") as [string, string]);

export const namesOf = (table: HistoryTable): readonly string[] => columnsOf(table).map(([name]) => name);

export const keyColumns = (table: HistoryTable): string => DEFINITIONS[table][0];

/** Creates a table in the search path. Its key is added after its rows. */
export const createTable = (table: HistoryTable): string =>
  `create table ${table} (${columnsOf(table).map(([name, type]) => (type.endsWith("?") ? `${name} ${type.slice(0, -1)}` : `${name} ${type} not null`))})`;

/** A query's rows of this table as PostgreSQL reads them from a CSV file. */
export const asCsvRows = (table: HistoryTable, query: string): string =>
  `select ${columnsOf(table).map(([name, type]) => (type.startsWith("bytea") ? `'\\x' || hex(${name})` : name))} from (${query})`;

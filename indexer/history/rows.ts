import {
  FLOOR_ATOMIC,
  KEPT_DAYS,
  NOBODY,
  PAYEE_SLOTS,
  PAYER_SLOTS,
  QUALIFYING_ATOMIC,
  type Scope,
  WINDOW_DAYS,
} from "../ledger.ts";
import type { IndexerSettings } from "../settings.ts";

/**
 * The version of the rows. Increment it when the tables, or the values that the handlers and the preload write, change for
 * the same chain and settings. A new index is then built next to the old one. Any other change (refactoring, Ponder, the
 * node) keeps the index. `test/indexer/golden.slow.test.ts` fails when an increment is due.
 */
export const ROWS_VERSION = 1;

// The arithmetic of the handlers (src/movements.ts, payments.ts) over all transfers, in DuckDB's SQL.

interface Counting extends Pick<IndexerSettings, "scope" | "ownAddresses"> {
  readonly firstBlock: number;
}

/** Returns the statements that derive the relations for the tables from the files' rows in `raw` (files.ts), in this order. */
export function relationsOf({ scope, ownAddresses, firstBlock }: Counting): readonly string[] {
  const ignored = [NOBODY, ...ownAddresses].map((address) => `unhex('${address.slice(2)}')`).join();
  return [
    // The transfers that count (`isBetweenOthers` in ledger.ts). place: the position in the chain; a log index has at most 20
    // bits.
    `create view transfers as
      select block::bigint << 20 | log_index as place, block, (time // 86400)::integer as day, time, "transaction",
        "from" as sender, "to" as payee, value, authorized, authorized and value >= ${QUALIFYING_ATOMIC} as qualifying
      from raw where block >= ${firstBlock} and value > 0 and "from" <> "to" ${scope === "full" ? "" : "and authorized"}
        and "from" not in (${ignored}) and "to" not in (${ignored})`,
    // The days on which two wallets met, and the payments of the lower one (`up`) and the higher one (`down`). age: days since
    // their previous meeting, or null if that was too long ago to count. met: more than dust was sent.
    `create table meetings as
      select * exclude (since), case when met and since < ${WINDOW_DAYS} then since end as age from (
        select *, day - max(case when met then day end)
            over (partition by low, high order by day rows between unbounded preceding and 1 preceding) as since from (
          select least(sender, payee) as low, greatest(sender, payee) as high, day, max(time) as time,
            bool_or(value >= ${QUALIFYING_ATOMIC}) as met,
            ${paymentsOf("up", "sender < payee")}, ${paymentsOf("down", "sender > payee")}
          from transfers group by all))`,
    // The transfers by which a wallet's largest funder changed or sent more.
    `create table funders as
      select wallet, place, funder, sent from (
        select *, max(sent) over (partition by wallet order by place rows between unbounded preceding and 1 preceding) as most from (
          select payee as wallet, place, sender as funder, sum(value) over (partition by payee, sender order by place) as sent
          from transfers where ${scope === "full"}))
      where most is null or sent > most`,
    // For each payer and payee, the payment whose sum reached the floor. funder: the payer's largest funder at that moment.
    // DuckDB's asof join on blobs returns rows of other wallets, so the funders are merged into the payments instead.
    `create table reached as
      select *, row_number() over (partition by payer order by place) - 1 as ordinal from (
        select wallet as payer, payee, block, place, last_value(funder ignore nulls) over (partition by wallet order by place) as funder
        from (
          select sender as wallet, payee, block, place, null::blob as funder from (
            select *, sum(value) over (partition by sender, payee order by place) as total from transfers where authorized)
          where total >= ${FLOOR_ATOMIC} and total - value < ${FLOOR_ATOMIC}
          union all by name select wallet, place, funder from funders))
      where payee is not null`,
  ];
}

const paymentsOf = (name: string, which: string): string => `
  count(*) filter (${which} and authorized) as ${name}_paid, count(*) filter (${which} and qualifying) as ${name}_qualifying,
  coalesce(sum(value) filter (${which} and qualifying), 0) as ${name}_atomic`;

/** The numbers of a day's histogram (`TouchedDay.ages` in ledger.ts): two hex digits for the first age, six for each count. */
const FIRST_AGE = "printf('%02x', min(age))";
const count = (sql: string): string => `printf('%06x', ${sql})`;

/** Wallets are processed by their first hexadecimal digit, in order, because DuckDB needs memory for each `string_agg` text. */
const DIGITS = [..."0123456789ABCDEF"];

function sideOfMeetings(wallet: string, payments: string, digit: string): string {
  return `select ${wallet} as wallet, day, time, ${payments}_paid as paid, ${payments}_qualifying as qualifying,
    ${payments}_atomic as atomic, met, age from meetings
    where hex(${wallet})[1] = '${digit}' and day >= (select max(day) - ${KEPT_DAYS} from meetings)`;
}

interface Table {
  readonly key: string;
  /** A type with `?` may be null. */
  readonly columns: string;
  /** Whether only an index of scope `selective` has it. */
  readonly isOnlySelective?: true;
  /** The query of its rows. A table that is made in parts has one part per first `digit` of the wallet. */
  readonly rows: (scope: Scope, digit: string) => string;
}

/** The tables of a history, the same as in ../ponder.schema.ts because the index takes them over, and their queries. */
const TABLES = {
  wallet_day: {
    key: "wallet, day",
    columns: `last_at bigint, day integer, paid integer, qualifying integer, touched integer, wallet bytea,
      qualifying_atomic numeric(78,0), ages bytea?`,
    rows: (_, digit) => `
      with sides as (${sideOfMeetings("low", "up", digit)} union all ${sideOfMeetings("high", "down", digit)}),
      days as (
        select wallet, day, max(time) as last_at, sum(paid) as paid, sum(qualifying) as qualifying, count(*) filter (met) as touched,
          sum(atomic) as qualifying_atomic
        from sides group by wallet, day),
      met as (select wallet, day, age, count(*) as n from sides where age is not null group by wallet, day, age),
      histograms as (
        select wallet, day,
          unhex(${FIRST_AGE} || string_agg(repeat(${count("counted - n")}, age - younger - 1) || ${count("counted")}, '' order by age)) as ages
        from (select *, coalesce(lag(age) over by_age, age - 1) as younger, sum(n) over by_age as counted
          from met window by_age as (partition by wallet, day order by age))
        group by wallet, day)
      select * from days left join histograms using (wallet, day)`,
  },
  pair: {
    key: "low, high",
    columns: "last_day integer, low bytea, high bytea, up_atomic numeric(78,0), down_atomic numeric(78,0)",
    // Only in scope `full`. Otherwise it follows from `paid`.
    rows: (scope) => `
      select coalesce(max(day) filter (value >= ${QUALIFYING_ATOMIC}), 0) as last_day, least(sender, payee) as low, greatest(sender, payee) as high,
        coalesce(sum(value) filter (sender < payee), 0) as up_atomic, coalesce(sum(value) filter (sender > payee), 0) as down_atomic
      from transfers where ${scope === "full"} group by low, high`,
  },
  wallet: {
    key: "wallet",
    columns: `last_paid_at bigint?, payees integer, payers integer, payer_funders integer, unfunded_payers integer, wallet bytea,
      last_paid_transaction bytea?, funder bytea?, funder_atomic numeric(78,0)`,
    rows: () => `
      select max(last_paid_at) as last_paid_at, coalesce(max(payees), 0) as payees, coalesce(max(payers), 0) as payers,
        coalesce(max(payer_funders), 0) as payer_funders, coalesce(max(unfunded_payers), 0) as unfunded_payers, wallet,
        max(last_paid_transaction) as last_paid_transaction, max(funder) as funder, coalesce(max(sent), 0) as funder_atomic
      from (
        select wallet, arg_max(funder, place) as funder, max(sent) as sent from funders group by wallet
        union all by name select sender as wallet, max(time) as last_paid_at, arg_max("transaction", place) as last_paid_transaction
          from transfers where qualifying group by sender
        union all by name select payer as wallet, count(*) as payees from reached group by payer
        union all by name select payee as wallet, count(*) as payers, count(distinct funder) as payer_funders,
            count(*) - count(funder) as unfunded_payers
          from reached group by payee)
      group by wallet`,
  },
  paid: {
    key: "payer, payee",
    columns: `first_at bigint, last_at bigint, count integer, met_day integer?, payer bytea, payee bytea, last_transaction bytea,
      atomic numeric(78,0), unpaid_atomic numeric(78,0), funder bytea?`,
    rows: (scope) => `
      select first_at, last_at, count, ${scope === "full" ? "null" : "last_day"} as met_day, payer, payee, last_transaction, atomic,
        0 as unpaid_atomic, funder
      from (
        select sender as payer, payee, count(*) as count, sum(value) as atomic, min(time) as first_at, max(time) as last_at,
          max(day) filter (qualifying) as last_day, arg_max("transaction", place) as last_transaction
        from transfers where authorized group by sender, payee)
      left join (select payer, payee, funder from reached) using (payer, payee)`,
  },
  payee_slot: {
    key: "payer, slot",
    columns: "slot integer, ordinal integer, payer bytea, payee bytea",
    rows: () => `
      select ordinal % ${PAYEE_SLOTS} as slot, ordinal, payer, payee
      from (select *, max(ordinal) over (partition by payer) as newest from reached)
      where ordinal > newest - ${PAYEE_SLOTS}`,
  },
  payer_funder: {
    key: "payee, funder",
    columns: "payee bytea, funder bytea",
    rows: () => `select distinct payee, funder from reached where funder is not null`,
  },
  payer_slot: {
    key: "payee, slot",
    columns: "payee bytea, slot integer, payer bytea, ordinal integer",
    isOnlySelective: true,
    rows: () => `
      select payee, number % ${PAYER_SLOTS} as slot, payer, number as ordinal
      from (
        select payee, payer, row_number() over (partition by payee order by place) - 1 as number,
          row_number() over (partition by payee order by place desc) as newest
        from reached)
      where newest <= ${PAYER_SLOTS}`,
  },
  floor_block: {
    key: "payer, payee",
    columns: "payer bytea, payee bytea, block bigint",
    isOnlySelective: true,
    rows: () => `select payer, payee, block from reached`,
  },
} as const satisfies Record<string, Table>;

export type HistoryTable = keyof typeof TABLES;

const tableOf = (table: HistoryTable): Table => TABLES[table];

/** The tables that an index of this scope has. */
export const historyTables = (scope: Scope): readonly HistoryTable[] =>
  (Object.keys(TABLES) as HistoryTable[]).filter((table) => scope === "selective" || !tableOf(table).isOnlySelective);

const columnsOf = (table: HistoryTable): readonly (readonly [name: string, type: string])[] =>
  TABLES[table].columns.split(/,\s+/).map((column) => column.split(" ") as [string, string]);

export const namesOf = (table: HistoryTable): readonly string[] => columnsOf(table).map(([name]) => name);

export const keyColumns = (table: HistoryTable): string => TABLES[table].key;

/** Returns the statement that creates a table in the search path, without its key. */
export const createTable = (table: HistoryTable): string =>
  `create table ${table} (${columnsOf(table).map(([name, type]) => (type.endsWith("?") ? `${name} ${type.slice(0, -1)}` : `${name} ${type} not null`))})`;

/** Formats a query's rows for PostgreSQL's CSV reader. */
export const asCsvRows = (table: HistoryTable, query: string): string =>
  `select ${columnsOf(table).map(([name, type]) => (type.startsWith("bytea") ? `'\\x' || hex(${name})` : name))} from (${query})`;

/** Returns queries that, run in order, return a table's rows in the order of the key. */
export const rowsOf = (table: HistoryTable, scope: Scope): readonly string[] =>
  (table === "wallet_day" ? DIGITS : [""]).map(
    (digit) => `select * from (${tableOf(table).rows(scope, digit)}) order by ${TABLES[table].key}`,
  );

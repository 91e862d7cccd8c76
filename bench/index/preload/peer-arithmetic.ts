import type { Address } from "../../../api/kernel/wallet.ts";
import type { HistoryTable } from "../../../indexer/history/tables.ts";
import {
  FLOOR_ATOMIC,
  KEPT_DAYS,
  NOBODY,
  PAYEE_SLOTS,
  PAYER_SLOTS,
  QUALIFYING_ATOMIC,
  type Scope,
  WINDOW_DAYS,
} from "../../../indexer/ledger.ts";

// The handlers' arithmetic (handlers/movements.ts, handlers/payments.ts) over all transfers at once, in PostgreSQL's SQL. Relations without a
// schema are the loader's own, found by its search path.

/** Ten times as fast as a pattern that counts the digits itself. */
const isHex = (column: string, digits: number): string =>
  `${column} ~ '^0x[0-9a-fA-F]*$' and length(${column}) = ${digits + 2}`;

/** The file's columns, checked as they are read, so that an error names the line of the wrong row. */
export const RAW_TABLE = `create unlogged table raw (
  block int8 not null constraint "block is below 2^31" check (block between 0 and 2147483647),
  time int8 not null constraint "time is in Unix seconds" check (time between 0 and 9999999999),
  transaction text not null constraint "transaction is 0x and 64 hex digits" check (${isHex("transaction", 64)}),
  log_index int4 not null constraint "log_index is below 2^20" check (log_index between 0 and 1048575),
  "from" text not null constraint "from is 0x and 40 hex digits" check (${isHex('"from"', 40)}),
  "to" text not null constraint "to is 0x and 40 hex digits" check (${isHex('"to"', 40)}),
  value int8 not null constraint "value is in atomic units" check (value >= 0),
  authorised boolean not null)`;

export interface Counting {
  readonly scope: Scope;
  /** In lower case. */
  readonly ownAddresses: readonly Address[];
  readonly firstBlock: number;
}

/** The transfers that count (`isBetweenOthers` in ledger.ts). `place` is their order in the chain. */
export const transfersOf = ({ scope, ownAddresses, firstBlock }: Counting): string => {
  const nobody = [NOBODY, ...ownAddresses].map((address) => `'${address}'`).join();
  return `create unlogged table transfers as
    select * from (
      select block << 20 | log_index as place, (time / 86400)::int as day, time as at, lower(transaction) as transaction,
        lower("from") as sender, lower("to") as payee, value, authorised
      from raw where block >= ${firstBlock} and value > 0 ${scope === "full" ? "" : "and authorised"}) one
    where sender <> payee and sender not in (${nobody}) and payee not in (${nobody})`;
};

interface Step {
  readonly name: string;
  readonly query: string;
}

/** What the tables are built from, in this order. */
export const stepsOf = ({ scope }: Pick<Counting, "scope">): readonly Step[] => [
  {
    // The days on which two wallets met. age: days since their previous meeting; null if that makes no difference from
    // never.
    name: "meetings",
    query: `select low, high, day, case when age < ${WINDOW_DAYS} then age end as age from (
      select low, high, day, day - lag(day) over (partition by low, high order by day) as age from (
        select distinct least(sender, payee) as low, greatest(sender, payee) as high, day from transfers) days) aged`,
  },
  {
    // Each time someone has sent a wallet more in total than anyone before: its largest funder from then on.
    name: "funders",
    query: `select wallet, place, funder, sent from (
      select *, max(sent) over (partition by wallet order by place rows between unbounded preceding and 1 preceding) as most from (
        select payee as wallet, place, sender as funder, sum(value) over (partition by payee, sender order by place) as sent
        from transfers where ${scope === "full"}) inflows) ranked
      where most is null or sent > most`,
  },
  {
    name: "payments",
    query: `select place, sender as payer, payee, at, transaction, value,
        sum(value) over (partition by sender, payee order by place) as total
      from transfers where authorised`,
  },
  {
    // For each payer and payee, the payment that took the sum to the floor; funder: the payer's largest at that moment.
    name: "reached",
    query: `select place, payer, payee, f.funder, (row_number() over (partition by payer order by place) - 1)::int as ordinal
      from payments left join lateral (
        select funder from funders where wallet = payer and funders.place < payments.place order by place desc limit 1) f on true
      where total >= ${FLOOR_ATOMIC} and total - value < ${FLOOR_ATOMIC}`,
  },
];

/** An index that a later step relies on. */
export const INDEXES: Readonly<Record<string, string>> = { funders: "create index on funders (wallet, place)" };

/** Text with 0x as the index stores it. */
const bytes = (column: string, as = column) => `decode(substr(${column}, 3), 'hex') as ${as}`;

/** The first age is two hex digits, and each number six: `TouchedDay.ages` in ledger.ts. */
const count = (sql: string) => `lpad(to_hex((${sql})::int), 6, '0')`;

/** `ages` from the ages that occur; text, because no aggregate fills the gaps between them. */
const WALLET_DAY = `
  with counted as (
    select wallet, day, count(*) filter (where authorised)::int as paid,
      count(*) filter (where authorised and value >= ${QUALIFYING_ATOMIC})::int as qualifying,
      coalesce(sum(value) filter (where authorised and value >= ${QUALIFYING_ATOMIC}), 0) as qualifying_atomic, max(at) as last_at
    from (select sender as wallet, day, at, authorised, value from transfers
      union all select payee, day, at, false, value from transfers) sides
    group by wallet, day),
  met as (
    select wallet, day, age, count(*) as n
    from (select low as wallet, day, age from meetings union all select high, day, age from meetings) both_sides
    group by wallet, day, age),
  aged as (
    select wallet, day, sum(n)::int as touched,
      lpad(to_hex(min(age)), 2, '0') || string_agg(repeat(${count("within - n")}, age - younger - 1) || ${count("within")}, '' order by age)
        filter (where age is not null) as ages
    from (select *, coalesce(lag(age) over sooner, age - 1) as younger, sum(n) over sooner as within
      from met window sooner as (partition by wallet, day order by age)) spaced
    group by wallet, day)
  select ${bytes("wallet")}, day, paid, qualifying, qualifying_atomic, touched, decode(ages, 'hex') as ages, last_at
  from counted join aged using (wallet, day) where day >= (select max(day) - ${KEPT_DAYS} from transfers)`;

const pair = (scope: Scope) => `
  select ${bytes("least(sender, payee)", "low")}, ${bytes("greatest(sender, payee)", "high")}, max(day) as last_day,
    coalesce(sum(value) filter (where sender < payee), 0) as up_atomic,
    coalesce(sum(value) filter (where sender > payee), 0) as down_atomic
  from transfers where ${scope === "full"} group by 1, 2`;

const WALLET = `
  select ${bytes("wallet")}, ${bytes("max(funder)", "funder")}, coalesce(max(sent), 0) as funder_atomic,
    max(last_paid_at) as last_paid_at, ${bytes("max(last_paid_transaction)", "last_paid_transaction")}, coalesce(max(payees), 0)::int as payees,
    coalesce(max(payers), 0)::int as payers, coalesce(max(payer_funders), 0)::int as payer_funders,
    coalesce(max(unfunded_payers), 0)::int as unfunded_payers
  from (
    (select distinct on (wallet) wallet, funder, sent, null::int8 as last_paid_at, null as last_paid_transaction,
        null::int8 as payees, null::int8 as payers, null::int8 as payer_funders, null::int8 as unfunded_payers
      from funders order by wallet, place desc)
    union all (select distinct on (payer) payer, null, null, at, transaction, null, null, null, null
      from payments where value >= ${QUALIFYING_ATOMIC} order by payer, place desc)
    union all select payer, null, null, null, null, count(*), null, null, null from reached group by payer
    union all select payee, null, null, null, null, null, count(*), count(distinct funder), count(*) - count(funder)
      from reached group by payee) facts
  group by wallet`;

const paid = (scope: Scope) => `
  select ${bytes("payer")}, ${bytes("payee")}, count, atomic, 0::numeric as unpaid_atomic, first_at, last_at,
    ${scope === "full" ? "null::int" : "(last_at / 86400)::int"} as met_day, ${bytes("transaction", "last_transaction")}, ${bytes("funder")}
  from (select payer, payee, count(*)::int as count, sum(value) as atomic, min(at) as first_at, max(at) as last_at, max(place) as place
      from payments group by payer, payee) sums
    join (select place, transaction from payments) lasts using (place)
    left join (select payer, payee, funder from reached) floors using (payer, payee)`;

const PAYEE_SLOT = `
  select ${bytes("payer")}, ordinal % ${PAYEE_SLOTS} as slot, ${bytes("payee")}, ordinal
  from (select *, max(ordinal) over (partition by payer) as newest from reached) numbered
  where ordinal > newest - ${PAYEE_SLOTS}`;

const PAYER_SLOT = `
  select ${bytes("payee")}, ordinal % ${PAYER_SLOTS} as slot, ${bytes("payer")}, ordinal
  from (select *, max(ordinal) over (partition by payee) as newest from (
    select payer, payee, (row_number() over (partition by payee order by place) - 1)::int as ordinal from reached) counted) numbered
  where ordinal > newest - ${PAYER_SLOTS}`;

/** Each table's rows, from the steps' relations. */
export const tableQueries = (scope: Scope): Readonly<Record<HistoryTable, string>> => ({
  wallet_day: WALLET_DAY,
  pair: pair(scope),
  wallet: WALLET,
  paid: paid(scope),
  payee_slot: PAYEE_SLOT,
  payer_funder: `select distinct ${bytes("payee")}, ${bytes("funder")} from reached where funder is not null`,
  payer_slot: PAYER_SLOT,
  floor_block: `select ${bytes("payer")}, ${bytes("payee")}, place >> 20 as block from reached`,
});

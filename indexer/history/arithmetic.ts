import {
  FLOOR_ATOMIC,
  KEPT_DAYS,
  PAYEE_SLOTS,
  PAYER_SLOTS,
  QUALIFYING_ATOMIC,
  type Scope,
  WINDOW_DAYS,
} from "../ledger.ts";
import type { HistoryTable } from "./tables.ts";

// The handlers' arithmetic (handlers/movements.ts, payments.ts, payers.ts) over all transfers at once, in DuckDB's SQL. Wallets
// are numbers here (transfers.ts), in the order of their addresses, so that an order by numbers is one by addresses. A key
// of two wallets is `first << 32 | second`. Types are those that encode.ts takes.

/** A transfer's place in the chain is its block's number, then so many bits of its log's index. */
const LOG_INDEX_BITS = 20;
export const PLACE = `block << ${LOG_INDEX_BITS} | log_index`;
const blockOf = (place: string): string => `${place} >> ${LOG_INDEX_BITS}`;

interface Step {
  readonly name: string;
  readonly query: string;
}

/** Numbers of payments: all of them, and the qualifying ones above these bits. One sum is cheaper than two. */
const COUNT_BITS = 31;
const payments = (which: string, name: string): string => `
  sum(case when ${which} then authorised::bigint | (qualifying::bigint << ${COUNT_BITS}) else 0 end)::bigint as ${name},
  sum(case when ${which} and qualifying then value else 0 end) as ${name}_atomic`;

/** What the tables are built from, besides `transfers`, in this order. */
export const stepsOf = (scope: Scope): readonly Step[] => [
  {
    // The days on which two wallets met, with what the lower one (`up`) and the higher one paid the other. age: days since
    // their previous meeting; null if that makes no difference from never.
    name: "meetings",
    query: `select * exclude (since), case when since < ${WINDOW_DAYS} then since end as age from (
      select *, day - lag(day) over (partition by pair order by day) as since from (
        select pair, day, max(time) as time, ${payments("sender < payee", "up")}, ${payments("sender > payee", "down")}
        from (select *, authorised and value >= ${QUALIFYING_ATOMIC} as qualifying from transfers) group by pair, day))`,
  },
  {
    // Each time someone has sent a wallet more in total than anyone before: its largest funder from then on.
    name: "funders",
    query: `select wallet, place, funder, sent from (
      select *, max(sent) over (partition by wallet order by place rows between unbounded preceding and 1 preceding) as most from (
        select payee as wallet, place, sender as funder, sum(value) over (partition by payee, sender order by place) as sent
        from transfers where ${scope === "full"}))
      where most is null or sent > most`,
  },
  {
    // For each payer and payee, the payment that took the sum to the floor; funder: the payer's largest at that moment.
    name: "reached",
    query: `select payer, payee, sooner.place, funder, (row_number() over (partition by payer order by sooner.place) - 1)::integer as ordinal
      from (
        select sender as payer, payee, place, value, sum(value) over (partition by sender, payee order by place) as total
        from transfers where authorised) sooner
      asof left join funders on payer = wallet and sooner.place > funders.place
      where total >= ${FLOOR_ATOMIC} and total - value < ${FLOOR_ATOMIC}`,
  },
];

/** Wallets by number: from the first to the one before `end`. */
export interface WalletRange {
  readonly first: number;
  readonly end: number;
}

/** What a table's rows are of. */
export interface Extent extends WalletRange {
  readonly scope: Scope;
}

const within = (column: string, { first, end }: WalletRange): string => `${column} >= ${first} and ${column} < ${end}`;
const SIDE = 2 ** 32;
const keyWithin = (key: string, { first, end }: WalletRange): string =>
  `${key} >= ${BigInt(first) * BigInt(SIDE)} and ${key} < ${BigInt(end) * BigInt(SIDE)}`;
const firstOf = (key: string): string => `(${key} >> 32)::integer`;
const secondOf = (key: string): string => `(${key} & ${SIDE - 1})::integer`;

/** The first age is two hex digits, and each number six: `TouchedDay.ages` in ledger.ts. */
const first = (sql: string) => `printf('%02x', ${sql})`;
const count = (sql: string) => `printf('%06x', ${sql})`;
/** The same, as bytes, of a day with one age. */
const only = (age: string, times: string) => `(${age}::uinteger << 24 | ${times})::uinteger::bit::blob`;

/** A day that a window may still reach back to. */
const IS_KEPT = `day >= (select max(day) - ${KEPT_DAYS} from transfers)`;

const dayOf = (wallet: string): string => `${wallet}::bigint << 32 | day`;

/** Both sides of the days on which wallets of a range met: the wallet's day as a key, what it paid, and the age. */
const meetingsWithin = (range: WalletRange): string => `
  select ${dayOf(firstOf("pair"))} as key, time, up as payments, up_atomic as atomic, age
    from meetings where ${keyWithin("pair", range)} and ${IS_KEPT}
  union all select ${dayOf(secondOf("pair"))}, time, down, down_atomic, age
    from meetings where ${within(secondOf("pair"), range)} and ${IS_KEPT}`;

/** `ages` from the ages that occur. Most days have one, and only the others are worth an aggregate of text. */
const walletDay = (range: WalletRange): string => `
  with facts as materialized (
    select key, sum(payments) as payments, sum(atomic) as qualifying_atomic, max(time) as last_at, count(*)::integer as touched,
      min(age) as youngest, max(age) as oldest, count(age) as known
    from (${meetingsWithin(range)}) group by key),
  met as (
    select key, age, count(*) as n
    from (${meetingsWithin(range)}) semi join (select key from facts where youngest < oldest) using (key)
    where age is not null group by key, age),
  several as (
    select key, unhex(${first("min(age)")} || string_agg(repeat(${count("within - n")}, age - younger - 1) || ${count("within")}, '' order by age)) as ages
    from (select *, coalesce(lag(age) over sooner, age - 1) as younger, sum(n) over sooner as within
      from met window sooner as (partition by key order by age))
    group by key)
  select last_at, ${secondOf("key")} as day, (payments & ${2 ** COUNT_BITS - 1})::integer as paid, (payments >> ${COUNT_BITS})::integer as qualifying,
    touched, ${firstOf("key")} as wallet, qualifying_atomic,
    coalesce(several.ages, ${only("youngest", "known")}) as ages
  from facts left join several using (key)
  order by key`;

/** In the authorised scope `paid` has all that. */
const pair = ({ scope, ...range }: Extent): string => `
  select max(day) as last_day, ${firstOf("pair")} as low, ${secondOf("pair")} as high,
    sum(case when sender < payee then value else 0 end) as up_atomic, sum(case when sender > payee then value else 0 end) as down_atomic
  from transfers where ${scope === "full"} and ${keyWithin("pair", range)}
  group by pair order by pair`;

const last = (column: string): string => `arg_max(${column}, place)`;

const wallet = (range: WalletRange): string => `
  select max(last_paid_at) as last_paid_at, coalesce(max(payees), 0)::integer as payees, coalesce(max(payers), 0)::integer as payers,
    coalesce(max(payer_funders), 0)::integer as payer_funders, coalesce(max(unfunded_payers), 0)::integer as unfunded_payers,
    wallet, max(transaction_high) as transaction_high, max(transaction_low) as transaction_low, max(funder) as funder,
    coalesce(max(sent), 0)::hugeint as funder_atomic
  from (
    select wallet, arg_max(funder, place) as funder, max(sent) as sent, null::bigint as last_paid_at, null::uuid as transaction_high,
        null::uuid as transaction_low, null::bigint as payees, null::bigint as payers, null::bigint as payer_funders,
        null::bigint as unfunded_payers
      from funders where ${within("wallet", range)} group by wallet
    union all select sender, null, null, max(time), ${last("transaction_high")}, ${last("transaction_low")}, null, null, null, null
      from transfers where authorised and value >= ${QUALIFYING_ATOMIC} and ${within("sender", range)} group by sender
    union all select payer, null, null, null, null, null, count(*), null, null, null
      from reached where ${within("payer", range)} group by payer
    union all select payee, null, null, null, null, null, null, count(*), count(distinct funder), count(*) - count(funder)
      from reached where ${within("payee", range)} group by payee)
  group by wallet order by wallet`;

const paid = ({ scope, ...range }: Extent): string => `
  select first_at, last_at, count, ${scope === "full" ? "null::integer" : "last_day"} as met_day, sender as payer, sums.payee as payee,
    transaction_high, transaction_low, atomic, 0::hugeint as unpaid_atomic, funder
  from (
    select sender, payee, count(*)::integer as count, sum(value) as atomic, min(time) as first_at, max(time) as last_at, max(day) as last_day,
      ${last("transaction_high")} as transaction_high, ${last("transaction_low")} as transaction_low
    from transfers where authorised and ${within("sender", range)} group by sender, payee) sums
    left join (select payer, payee, funder from reached where funder is not null and ${within("payer", range)}) floors
      on sender = payer and sums.payee = floors.payee
  order by sender, sums.payee`;

const payeeSlot = (range: WalletRange): string => `
  select ordinal % ${PAYEE_SLOTS} as slot, ordinal, payer, payee
  from (select *, max(ordinal) over (partition by payer) as newest from reached where ${within("payer", range)})
  where ordinal > newest - ${PAYEE_SLOTS}
  order by payer, slot`;

const payerFunder = (range: WalletRange): string => `
  select distinct payee, funder from reached where funder is not null and ${within("payee", range)}
  order by payee, funder`;

const payerSlot = (range: WalletRange): string => `
  select payee, ordinal % ${PAYER_SLOTS} as slot, payer, ordinal
  from (
    select payee, payer, (row_number() over oldest - 1)::integer as ordinal,
      row_number() over (partition by payee order by place desc) as newest
    from reached where ${within("payee", range)} window oldest as (partition by payee order by place))
  where newest <= ${PAYER_SLOTS}
  order by payee, slot`;

const floorBlock = (range: WalletRange): string => `
  select payer, payee, ${blockOf("place")} as block from reached where ${within("payer", range)} order by payer, payee`;

/** Each table's rows of the wallets in a range, in the order of the table's key, from the steps' relations; columns as in tables.ts, a hash in two. */
export const TABLE_QUERIES: Readonly<Record<HistoryTable, (extent: Extent) => string>> = {
  wallet_day: walletDay,
  pair,
  wallet,
  paid,
  payee_slot: payeeSlot,
  payer_funder: payerFunder,
  payer_slot: payerSlot,
  floor_block: floorBlock,
};

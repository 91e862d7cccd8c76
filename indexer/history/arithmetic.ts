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
// of two wallets is `first << 32 | second`. Bytes come as PostgreSQL's COPY reads them.

/** A transfer's place in the chain is its block's number, then so many bits of its log's index. */
const LOG_INDEX_BITS = 20;
export const PLACE = `block << ${LOG_INDEX_BITS} | log_index`;
const blockOf = (place: string): string => `${place} >> ${LOG_INDEX_BITS}`;

interface Step {
  readonly name: string;
  readonly query: string;
}

/** A number of hexadecimal digits as COPY reads bytes. */
export const asBytes = (hex: string): string => `'\\\\x' || ${hex}`;

/** What the tables are built from, besides `transfers`, in this order. */
export const stepsOf = (scope: Scope): readonly Step[] => [
  {
    // The days on which two wallets met. age: days since their previous meeting; null if that makes no difference from
    // never.
    name: "meetings",
    query: `select pair, day, case when age < ${WINDOW_DAYS} then age end as age from (
      select pair, day, day - lag(day) over (partition by pair order by day) as age from (
        select distinct pair, day from transfers))`,
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

/** A day that a window may still reach back to. */
const IS_KEPT = `day >= (select max(day) - ${KEPT_DAYS} from transfers)`;

const dayOf = (wallet: string): string => `${wallet}::bigint << 32 | day`;

/** Both sides of the days on which wallets of a range met: the wallet's day, and the age. */
const meetingsWithin = (range: WalletRange): string => `
  select ${dayOf(firstOf("pair"))} as key, age from meetings where ${keyWithin("pair", range)} and ${IS_KEPT}
  union all select ${dayOf(secondOf("pair"))}, age from meetings where ${within(secondOf("pair"), range)} and ${IS_KEPT}`;

/** `ages` from the ages that occur. Most days have one, and only the others are worth an aggregate of text. */
const walletDay = (range: WalletRange): string => `
  with facts as materialized (
    select key, sum(paid)::integer as paid, sum(qualifying)::integer as qualifying, sum(qualifying_atomic) as qualifying_atomic,
      max(time) as last_at, sum(met)::integer as touched, min(age) as youngest, max(age) as oldest, count(age) as known
    from (select ${dayOf("sender")} as key, time, authorised::integer as paid, (authorised and value >= ${QUALIFYING_ATOMIC})::integer as qualifying,
          case when authorised and value >= ${QUALIFYING_ATOMIC} then value else 0 end as qualifying_atomic, 0 as met, null::integer as age
        from transfers where ${within("sender", range)} and ${IS_KEPT}
      union all select ${dayOf("payee")}, time, 0, 0, 0, 0, null from transfers where ${within("payee", range)} and ${IS_KEPT}
      union all select key, null, 0, 0, 0, 1, age from (${meetingsWithin(range)}))
    group by key),
  met as (
    select key, age, count(*) as n
    from (${meetingsWithin(range)}) semi join (select key from facts where youngest < oldest) using (key)
    where age is not null group by key, age),
  several as (
    select key, ${first("min(age)")} || string_agg(repeat(${count("within - n")}, age - younger - 1) || ${count("within")}, '' order by age) as ages
    from (select *, coalesce(lag(age) over sooner, age - 1) as younger, sum(n) over sooner as within
      from met window sooner as (partition by key order by age))
    group by key)
  select last_at, ${secondOf("key")} as day, paid, qualifying, touched, names.name as wallet, qualifying_atomic,
    case when youngest is null then null when youngest = oldest then ${asBytes(`${first("youngest")} || ${count("known")}`)}
      else ${asBytes("several.ages")} end as ages
  from facts left join several using (key) join names on names.id = ${firstOf("key")} and ${within("names.id", range)}
  order by key`;

/** In the authorised scope `paid` has all that. */
const pair = ({ scope, ...range }: Extent): string => `
  select last_day, lows.name as low, highs.name as high, up_atomic, down_atomic
  from (
    select pair, max(day) as last_day, sum(case when sender < payee then value else 0 end) as up_atomic,
      sum(case when sender > payee then value else 0 end) as down_atomic
    from transfers where ${scope === "full"} and ${keyWithin("pair", range)} group by pair) sums
    join names lows on lows.id = ${firstOf("pair")} and ${within("lows.id", range)}
    join names highs on highs.id = ${secondOf("pair")}
  order by pair`;

const wallet = (range: WalletRange): string => `
  select last_paid_at, payees, payers, payer_funders, unfunded_payers, names.name as wallet,
    ${asBytes("hex(last_paid_transaction)")} as last_paid_transaction, funding.name as funder, funder_atomic
  from (
    select wallet, max(funder) as funder, coalesce(max(sent), 0) as funder_atomic, max(last_paid_at) as last_paid_at,
      max(last_paid_transaction) as last_paid_transaction, coalesce(max(payees), 0) as payees, coalesce(max(payers), 0) as payers,
      coalesce(max(payer_funders), 0) as payer_funders, coalesce(max(unfunded_payers), 0) as unfunded_payers
    from (
      select wallet, arg_max(funder, place) as funder, max(sent) as sent, null::bigint as last_paid_at, null::blob as last_paid_transaction,
          null::bigint as payees, null::bigint as payers, null::bigint as payer_funders, null::bigint as unfunded_payers
        from funders where ${within("wallet", range)} group by wallet
      union all select sender, null, null, max(time), arg_max(transaction, place), null, null, null, null
        from transfers where authorised and value >= ${QUALIFYING_ATOMIC} and ${within("sender", range)} group by sender
      union all select payer, null, null, null, null, count(*), null, null, null from reached where ${within("payer", range)} group by payer
      union all select payee, null, null, null, null, null, count(*), count(distinct funder), count(*) - count(funder)
        from reached where ${within("payee", range)} group by payee)
    group by wallet) facts
    join names on names.id = facts.wallet and ${within("names.id", range)}
    left join names funding on funding.id = facts.funder
  order by facts.wallet`;

const paid = ({ scope, ...range }: Extent): string => `
  select first_at, last_at, count, ${scope === "full" ? "null" : "last_day"} as met_day, payers.name as payer, payees.name as payee,
    ${asBytes("hex(last_transaction)")} as last_transaction, atomic, 0 as unpaid_atomic, funding.name as funder
  from (
    select sender, payee, count(*) as count, sum(value) as atomic, min(time) as first_at, max(time) as last_at, max(day) as last_day,
      arg_max(transaction, place) as last_transaction
    from transfers where authorised and ${within("sender", range)} group by sender, payee) sums
    left join (select payer, payee, funder from reached where funder is not null and ${within("payer", range)}) floors
      on sender = payer and sums.payee = floors.payee
    join names payers on payers.id = sums.sender and ${within("payers.id", range)}
    join names payees on payees.id = sums.payee
    left join names funding on funding.id = floors.funder
  order by sums.sender, sums.payee`;

const payeeSlot = (range: WalletRange): string => `
  select ordinal % ${PAYEE_SLOTS} as slot, ordinal, payers.name as payer, payees.name as payee
  from (select *, max(ordinal) over (partition by payer) as newest from reached where ${within("payer", range)}) numbered
    join names payers on payers.id = payer and ${within("payers.id", range)}
    join names payees on payees.id = payee
  where ordinal > newest - ${PAYEE_SLOTS}
  order by numbered.payer, slot`;

const payerFunder = (range: WalletRange): string => `
  select payees.name as payee, funding.name as funder
  from (select distinct payee, funder from reached where funder is not null and ${within("payee", range)}) known
    join names payees on payees.id = known.payee and ${within("payees.id", range)}
    join names funding on funding.id = known.funder
  order by known.payee, known.funder`;

const payerSlot = (range: WalletRange): string => `
  select payees.name as payee, ordinal % ${PAYER_SLOTS} as slot, payers.name as payer, ordinal
  from (
    select payee, payer, (row_number() over oldest - 1)::integer as ordinal,
      row_number() over (partition by payee order by place desc) as newest
    from reached where ${within("payee", range)} window oldest as (partition by payee order by place)) numbered
    join names payees on payees.id = payee and ${within("payees.id", range)}
    join names payers on payers.id = payer
  where newest <= ${PAYER_SLOTS}
  order by numbered.payee, slot`;

const floorBlock = (range: WalletRange): string => `
  select payers.name as payer, payees.name as payee, ${blockOf("place")} as block
  from (select payer, payee, place from reached where ${within("payer", range)}) floors
    join names payers on payers.id = floors.payer and ${within("payers.id", range)}
    join names payees on payees.id = floors.payee
  order by floors.payer, floors.payee`;

/** Each table's rows of the wallets in a range, in the order of the table's key, from the steps' relations; columns as in tables.ts. */
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

import pg from "pg";
import {
  type ChainFacts,
  type ChainReading,
  dayOf,
  type PayeeFact,
  WINDOW_DAYS,
  windowAt,
} from "../../../packages/verifier/src/score/v1/facts.ts";
import { MAIN_NETWORK, type Network } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { ScoreIndex } from "../../score/score-sources.ts";
import { createReader, MAX_LAG_MS } from "./reader.ts";

const NETWORK: Network = MAIN_NETWORK;
const DAY_MS = 86_400_000;

export interface ScoreIndexOptions {
  readonly viewsSchema: string;
  /** An index that lags further behind the requested time counts as unavailable. */
  readonly maxLagMs?: number;
}

/**
 * Reads what the indexer stores in PostgreSQL: one statement for all wallets, so that every fact comes from the same
 * block.
 */
export function createScoreIndex(pool: pg.Pool, { viewsSchema, maxLagMs = MAX_LAG_MS }: ScoreIndexOptions): ScoreIndex {
  const read = createReader(pool);
  const text = readingQuery(pg.escapeIdentifier(viewsSchema));
  return {
    async read(wallets, now) {
      const values = [wallets, now.getTime()];
      const rows = await read<ReadingRow>({ name: `score in ${viewsSchema}`, text, values });
      if (rows === null || rows.length < wallets.length) return null;
      const isCurrent = ({ at }: ReadingRow) => now.getTime() - at * 1000 <= maxLagMs;
      return rows.every(isCurrent) ? rows.map(renderReading) : null;
    },
  };
}

/**
 * `offset 0` is a fence: without it the planner scans all of a payer's payees for each slot. The two addresses are
 * ordered as in the key of `pair`.
 */
const payeesQuery = (views: string): string => `
  select json_agg(json_build_object(
      'payee', s.payee, 'value', p.atomic::text, 'first_at', p.first_at, 'last_at', p.last_at, 'last_tx', p.last_transaction,
      'returned', (case when s.payer = r.low then r.down_atomic else r.up_atomic end)::text, 'funder_at_floor', p.funder,
      'other_funders', c.payer_funders - x.circle,
      'unfunded_payers', c.unfunded_payers - (case when p.funder is null then 1 else 0 end)))
    from ${views}.payee_slot s
    cross join lateral (select * from ${views}.paid where payer = s.payer and payee = s.payee offset 0) p
    cross join lateral (select * from ${views}.wallet where wallet = s.payee offset 0) c
    cross join lateral (select * from ${views}.pair
      where low = least(s.payer, s.payee) and high = greatest(s.payer, s.payee) offset 0) r
    cross join lateral (select count(*)::int as circle from ${views}.payer_funder
      where payee = s.payee and funder in (s.payer, s.payee, me.funder, p.funder)) x
    where s.payer = k.wallet`;

/**
 * `$1` is the wallets, `$2` the requested time in milliseconds. Without coverage or position there is nothing to read.
 */
const readingQuery = (views: string): string => `
  with reach as materialized (
    select scope, first_block, block, at, greatest($2::int8, at * 1000) as as_of_ms
      from ${views}.coverage cross join ${views}.position)
  select reach.scope, reach.first_block, reach.block::float8, reach.at::float8, reach.as_of_ms::float8,
    me.funder, me.last_paid_at::float8, me.last_paid_transaction,
    (select json_agg(json_build_object('day', day, 'count', qualifying, 'value', qualifying_atomic::text))
      from ${views}.wallet_day where wallet = k.wallet
      and day between (reach.as_of_ms / ${DAY_MS})::int - ${WINDOW_DAYS - 1} and (reach.as_of_ms / ${DAY_MS})::int
      and qualifying > 0) as days,
    (${payeesQuery(views)}) as payees,
    e.release_payers, e.refunds_against, m.last_release_transaction, m.last_refund_transaction
  from unnest($1::text[]) with ordinality k(wallet, place)
  cross join reach
  left join lateral (select * from ${views}.wallet where wallet = k.wallet offset 0) me on true
  cross join lateral (select coalesce(sum(release_payers), 0)::int as release_payers,
    coalesce(sum(refunds_against), 0)::int as refunds_against from ${views}.escrow_account where account = k.wallet) e
  left join lateral (select * from ${views}.escrow_merchant where merchant = k.wallet offset 0) m on true
  order by k.place`;

interface ReadingRow {
  readonly scope: ChainFacts["scope"];
  readonly first_block: number;
  readonly block: number;
  readonly at: number;
  readonly as_of_ms: number;
  readonly funder: Address | null;
  readonly last_paid_at: number | null;
  readonly last_paid_transaction: Hex | null;
  readonly days: readonly { readonly day: number; readonly count: number; readonly value: string }[] | null;
  readonly payees: readonly PayeeColumns[] | null;
  readonly release_payers: number;
  readonly refunds_against: number;
  readonly last_release_transaction: Hex | null;
  readonly last_refund_transaction: Hex | null;
}

/** A payee as the index stores it: times in Unix seconds, and counts for any scope. */
type PayeeColumns = Omit<PayeeFact, "first_at" | "last_at" | "other_funders" | "unfunded_payers"> & {
  readonly [Name in "first_at" | "last_at" | "other_funders" | "unfunded_payers"]: number;
};

const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString();
const isoDay = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);

function renderReading(row: ReadingRow): ChainReading {
  const as_of = new Date(row.as_of_ms).toISOString();
  const window = windowAt(as_of);
  return {
    as_of,
    as_of_block: row.block,
    chain: {
      network: NETWORK,
      scope: row.scope,
      first_block: row.first_block,
      window,
      payments: {
        days: (row.days ?? []).map((entry) => ({ ...entry, day: isoDay(entry.day) })),
        last: renderLast(row, window),
      },
      largest_funder: row.funder,
      payees: (row.payees ?? []).map((payee) => renderPayee(payee, row.scope)),
      escrow: {
        release_payers: row.release_payers,
        last_release_tx: row.last_release_transaction,
        refunds_against: row.refunds_against,
        last_refund_tx: row.last_refund_transaction,
      },
    },
  };
}

function renderLast(row: ReadingRow, window: ChainFacts["window"]): ChainFacts["payments"]["last"] {
  if (row.last_paid_at === null || row.last_paid_transaction === null) return null;
  const at = timeOf(row.last_paid_at);
  return dayOf(at) < window.from ? null : { at, tx: row.last_paid_transaction };
}

const renderPayee = (row: PayeeColumns, scope: ChainFacts["scope"]): PayeeFact => ({
  ...row,
  first_at: timeOf(row.first_at),
  last_at: timeOf(row.last_at),
  ...(scope === "full" ? {} : { other_funders: null, unfunded_payers: null }),
});

import pg from "pg";
import {
  type ChainReading,
  dayOf,
  type EscrowFacts,
  type PayeeFact,
  WINDOW_DAYS,
  windowAt,
} from "../../packages/verifier/src/score/facts.ts";
import {
  createLagCheck,
  createReader,
  DISTINCT,
  type IndexOptions,
  keyOf,
  MAX_LAG_MS,
  receivedIn,
  seenBefore,
  textOf,
} from "../platform/index/reader.ts";
import { MAIN_NETWORK, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

type Chain = ChainReading["chain"];

const NETWORK: Network = MAIN_NETWORK;
const DAY_MS = 86_400_000;

export interface ScoreIndexOptions extends IndexOptions {
  /** An index further behind the requested time counts as unavailable. */
  readonly maxLagMs?: number;
}

export type ScoreIndex = ReturnType<typeof createScoreIndex>;

/**
 * Reads the facts that the indexer stores in PostgreSQL, in one statement for all wallets, so that they are all as of
 * the same block.
 */
export function createScoreIndex(pool: pg.Pool, { viewsSchema, maxLagMs = MAX_LAG_MS, log }: ScoreIndexOptions) {
  const read = createReader(pool, log);
  const isCurrent = createLagCheck(maxLagMs, log);
  const query = { name: `score in ${viewsSchema}`, text: readingQuery(pg.escapeIdentifier(viewsSchema)) };
  return {
    /**
     * Returns one reading per wallet, in the given order, all after the same block and as of the same instant: `now`, or
     * that block's time if later. Null while the index is unavailable, or more than 60 seconds behind `now`.
     */
    async read(wallets: readonly Address[], now: Date): Promise<readonly ChainReading[] | null> {
      const values = [wallets, now.getTime()];
      const rows = await read<ReadingRow>({ ...query, values });
      if (rows === null || rows.length < wallets.length) return null;
      return rows.every(({ at }) => isCurrent(new Date(at * 1000), now)) ? rows.map(renderReading) : null;
    },
  };
}

/** `offset 0` is an optimization fence: without it, the planner scans all of a payer's payees for each slot. */
const payeesQuery = (views: string): string => `
  select json_agg(json_build_object(
      'payee', ${textOf("s.payee")}, 'value', p.atomic::text, 'first_at', p.first_at, 'last_at', p.last_at,
      'last_tx', ${textOf("p.last_transaction")},
      'returned', (${receivedIn(views, { me: "s.payer", other: "s.payee" })} + p.unpaid_atomic)::text,
      'funder_at_floor', ${textOf("p.funder")}, 'other_funders', c.payer_funders - x.circle,
      'unfunded_payers', c.unfunded_payers - (case when p.funder is null then 1 else 0 end)))
    from ${views}.payee_slot s
    cross join lateral (select * from ${views}.paid where payer = s.payer and payee = s.payee offset 0) p
    cross join lateral (select * from ${views}.wallet where wallet = s.payee offset 0) c
    cross join lateral (select count(*)::int as circle from ${views}.payer_funder
      where payee = s.payee and funder in (s.payer, s.payee, me.funder, p.funder)) x
    where s.payer = k.key`;

/** Selects a merchant's outcomes of one kind: buyers, buyer-days, and the last transaction. */
const outcomesQuery = (views: string, outcome: "released" | "refunded"): string => `
  select json_build_object('buyers', ${DISTINCT}, 'days', coalesce(sum(touched), 0)::int,
      'tx', (array_agg(last_transaction order by day desc))[1])
    from ${views}.escrow_day ${seenBefore("reach.first_day")}
    where merchant = k.wallet and outcome = '${outcome}' and day between reach.first_day and reach.last_day`;

/** `$1` is the wallets, `$2` the requested time in milliseconds. Without coverage or a position, there are no rows. */
const readingQuery = (views: string): string => `
  with reach as materialized (
    select *, (as_of_ms / ${DAY_MS})::int as last_day, (as_of_ms / ${DAY_MS})::int - ${WINDOW_DAYS - 1} as first_day
    from (select scope, first_block, block, at, greatest($2::int8, at * 1000) as as_of_ms
      from ${views}.coverage cross join ${views}.position) latest)
  select reach.scope, reach.first_block, reach.block::float8, reach.at::float8, reach.as_of_ms::float8,
    ${textOf("me.funder")} as funder, me.last_paid_at::float8, ${textOf("me.last_paid_transaction")} as last_paid_transaction,
    (select json_agg(json_build_object('day', day, 'count', qualifying, 'value', qualifying_atomic::text))
      from ${views}.wallet_day where wallet = k.key
      and day between reach.first_day and reach.last_day and qualifying > 0) as days,
    (${payeesQuery(views)}) as payees,
    (${outcomesQuery(views, "released")}) as released, (${outcomesQuery(views, "refunded")}) as refunded
  from (select *, ${keyOf("wallet")} as key from unnest($1::text[]) with ordinality given(wallet, place)) k
  cross join reach
  left join lateral (select * from ${views}.wallet where wallet = k.key offset 0) me on true
  order by k.place`;

interface ReadingRow {
  readonly scope: Chain["scope"];
  readonly first_block: number;
  readonly block: number;
  readonly at: number;
  readonly as_of_ms: number;
  readonly funder: Address | null;
  readonly last_paid_at: number | null;
  readonly last_paid_transaction: Hex | null;
  readonly days: readonly { readonly day: number; readonly count: number; readonly value: string }[] | null;
  readonly payees: readonly PayeeColumns[] | null;
  readonly released: OutcomeColumns;
  readonly refunded: OutcomeColumns;
}

interface OutcomeColumns {
  readonly buyers: number;
  readonly days: number;
  readonly tx: Hex | null;
}

/** A payee as the index stores it: times in Unix seconds, and counts for any scope. */
type PayeeColumns = Omit<PayeeFact, "first_at" | "last_at" | "other_funders" | "unfunded_payers" | "payers"> & {
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
      lookup: null,
      largest_funder: row.funder,
      payees: (row.payees ?? []).map((payee) => renderPayee(payee, row.scope)),
      escrow: renderOutcomes(row),
    },
  };
}

const renderOutcomes = ({ released, refunded }: ReadingRow): EscrowFacts => ({
  buyers: released.buyers,
  release_days: released.days,
  last_release_tx: released.tx,
  refunded_buyers: refunded.buyers,
  refund_days: refunded.days,
  last_refund_tx: refunded.tx,
});

function renderLast(row: ReadingRow, window: Chain["window"]): Chain["payments"]["last"] {
  if (row.last_paid_at === null || row.last_paid_transaction === null) return null;
  const at = timeOf(row.last_paid_at);
  return dayOf(at) < window.from ? null : { at, tx: row.last_paid_transaction };
}

const renderPayee = (row: PayeeColumns, scope: Chain["scope"]): PayeeFact => ({
  ...row,
  payers: scope === "selective" ? [] : null,
  first_at: timeOf(row.first_at),
  last_at: timeOf(row.last_at),
});

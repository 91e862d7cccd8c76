import pg from "pg";
import type { Activity, IndexPosition } from "../kernel/activity.ts";
import type { Address } from "../kernel/wallet.ts";

const WINDOW_DAYS = 90;
const DAY_MS = 86_400_000;
const TIMEOUT_MS = 1_000;
/** While the index is away, one request in this time finds out; the others are answered at once. */
const ASK_AGAIN_MS = 1_000;

export interface ActivityIndex {
  /** The wallet's history in the 90 UTC calendar days that end with `now`'s; null while the index is unavailable. */
  activity(wallet: Address, now: Date): Promise<Activity | null>;
  /** The last block that the index has read; null while it is unavailable. */
  position(): Promise<IndexPosition | null>;
}

interface ActivityRow {
  readonly scope: Activity["scope"];
  readonly first_block: number;
  readonly settled_payments: number;
  readonly distinct_counterparties: number;
  readonly last_at: number | null;
}

/** Reads what the indexer keeps in PostgreSQL, through the views that follow it from deployment to deployment. */
export function createActivityIndex(pool: pg.Pool, { viewsSchema }: { readonly viewsSchema: string }): ActivityIndex {
  const views = pg.escapeIdentifier(viewsSchema);
  const read = createReader(pool);
  return {
    async activity(wallet, now) {
      const today = Math.floor(now.getTime() / DAY_MS);
      const first = today - WINDOW_DAYS + 1;
      const row = await read<ActivityRow>({
        name: `activity in ${viewsSchema}`,
        text: activityQuery(views),
        values: [wallet, first, today],
      });
      return row && renderActivity(row, { first, today, now });
    },
    async position() {
      const row = await read<{ checkpoint: string }>({
        name: `position in ${viewsSchema}`,
        text: `select latest_checkpoint as checkpoint from ${views}._ponder_checkpoint`,
        values: [],
      });
      // Ponder's checkpoint: 10 digits of Unix time, 16 of chain id, 16 of block number, then the place in the block.
      return (
        row && {
          timestamp: new Date(Number(row.checkpoint.slice(0, 10)) * 1000),
          block: Number(row.checkpoint.slice(26, 42)),
        }
      );
    },
  };
}

/** `ages[1 : day - first]` are those of the day's counterparties that were touched on an earlier day of the window. */
const activityQuery = (views: string): string => `
  select scope, first_block,
    coalesce(sum(paid), 0)::int as settled_payments,
    coalesce(sum(touched - (select coalesce(sum(n), 0) from unnest(ages[1:day - $2]) n)), 0)::int as distinct_counterparties,
    max(last_at)::float8 as last_at
  from ${views}.coverage left join ${views}.wallet_day on wallet = $1 and day between $2 and $3
  group by scope, first_block`;

interface Window {
  readonly first: number;
  readonly today: number;
  readonly now: Date;
}

function renderActivity(row: ActivityRow, { first, today, now }: Window): Activity {
  const isoDay = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);
  return {
    settledPayments: row.settled_payments,
    distinctCounterparties: row.distinct_counterparties,
    // A block's timestamp may be a little ahead of this machine's clock.
    lastSeenDays: row.last_at === null ? null : Math.max(0, Math.floor((now.getTime() - row.last_at * 1000) / DAY_MS)),
    firstDay: isoDay(first),
    lastDay: isoDay(today),
    scope: row.scope,
    firstBlock: row.first_block,
  };
}

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** Runs a query that answers one row. Null: the index cannot be read now, which is no error of the caller's. */
function createReader(pool: pg.Pool): <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => Promise<Row | null> {
  let awayUntil = 0;
  return async <Row extends pg.QueryResultRow>(query: pg.QueryConfig) => {
    if (Date.now() < awayUntil) return null;
    try {
      const timed: TimedQuery = { ...query, query_timeout: TIMEOUT_MS };
      const { rows } = await pool.query<Row>(timed);
      return rows[0] ?? null;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      // The pool drops a connection at every error: a reader that insists would cost everybody theirs.
      awayUntil = Date.now() + ASK_AGAIN_MS;
      return null;
    }
  };
}

/** No table, no schema (the first backfill is not over), cancelled by a timeout, shut down. */
const AWAY = new Set(["42P01", "3F000", "57014", "57P01", "57P02", "57P03"]);

/** An error without a SQLSTATE of PostgreSQL's is the connection's: refused, lost, or too slow. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return true;
  return AWAY.has(error.code) || ["08", "53"].includes(error.code.slice(0, 2));
}

import pg from "pg";
import { createRecent } from "../chain/batcher.ts";
import type { Address } from "../wallet.ts";
import {
  createLagCheck,
  createReader,
  DISTINCT,
  type IndexOptions,
  keyOf,
  MAX_LAG_MS,
  type Read,
  seenBefore,
} from "./reader.ts";

/** The UTC calendar days of a wallet's history that count (SPEC.md, limits). */
export const ACTIVITY_DAYS = 90;

/** The smallest transfer that makes a counterparty, in USDC: the score's smallest qualifying payment. */
export const COUNTERPARTY_FLOOR = "0.001";

/** A wallet's public USDC history over `ACTIVITY_DAYS`, from `firstDay` to `lastDay` (SPEC.md, verification record). */
export interface Activity {
  /** Outgoing authorized payments above zero, excluding those to itself and to the service. */
  readonly settledPayments: number;
  /** Addresses it paid or was paid by, excluding itself, the service, and transfers below `COUNTERPARTY_FLOOR`. */
  readonly distinctCounterparties: number;
  /** Whole days since its last transfer in the window; null if it had none. */
  readonly lastSeenDays: number | null;
  /** `YYYY-MM-DD`, UTC; both days are inclusive. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** `selective`: the index does not contain plain transfers. */
  readonly scope: "full" | "selective";
  /** The index starts at this block, even if the window reaches further back. */
  readonly firstBlock: number;
}

/** The last block that the index has read. */
export interface IndexPosition {
  readonly block: number;
  readonly timestamp: Date;
}

const DAY_MS = 86_400_000;
/** A gate may ask for one wallet many times a second, and the index gets a block every two seconds. */
const CACHE_MS = 200;

export interface ActivityIndex {
  /**
   * Returns the wallet's history over the 90 UTC calendar days ending with the day of `now`; null while the index is
   * unavailable or behind.
   */
  activity(wallet: Address, now: Date): Promise<Activity | null>;
  /** Returns the last block that the index has read; null while the index is unavailable. */
  position(): Promise<IndexPosition | null>;
}

interface ActivityRow {
  readonly settled_payments: number;
  readonly distinct_counterparties: number;
  readonly last_at: number | null;
}

/** The coverage and the position of the index. */
interface Reach {
  readonly scope: Activity["scope"];
  readonly firstBlock: number;
  readonly position: IndexPosition;
}

export interface ActivityIndexOptions extends IndexOptions {
  /** The maximum lag behind the requested time. Beyond it, the index counts as unavailable. */
  readonly maxLagMs?: number;
}

/** Creates a reader of the indexer's data in PostgreSQL, through views that follow it across deployments. */
export function createActivityIndex(
  pool: pg.Pool,
  { viewsSchema, maxLagMs = MAX_LAG_MS, log }: ActivityIndexOptions,
): ActivityIndex {
  const views = pg.escapeIdentifier(viewsSchema);
  const read = createReader(pool, log);
  const isCurrent = createLagCheck(maxLagMs, log);
  const recentReach = createRecent<Reach | null>(CACHE_MS);
  const recentRows = createRecent<ActivityRow[] | null>(CACHE_MS);
  const reach = () => recentReach(viewsSchema, () => readReach(read, viewsSchema));
  const current = async (now: Date) => {
    const reached = await reach();
    return reached !== null && isCurrent(reached.position.timestamp, now) ? reached : null;
  };
  return {
    async activity(wallet, now) {
      const [reached, window] = [await current(now), windowAt(now)];
      if (reached === null) return null;
      const values = [wallet, window.first, window.today];
      const query = { name: `activity in ${viewsSchema}`, text: activityQuery(views), values };
      const rows = await recentRows(`${wallet} ${window.today}`, () => read<ActivityRow>(query));
      return rows?.[0] ? renderActivity(rows[0], window, reached) : null;
    },
    position: async () => (await reach())?.position ?? null,
  };
}

interface ReachRow {
  readonly scope: Activity["scope"];
  readonly first_block: number;
  readonly block: number;
  readonly at: number;
}

async function readReach(read: Read, viewsSchema: string): Promise<Reach | null> {
  const views = pg.escapeIdentifier(viewsSchema);
  const rows = await read<ReachRow>({
    name: `reach of ${viewsSchema}`,
    text: `select scope, first_block, block::float8, at::float8 from ${views}.coverage cross join ${views}.position`,
  });
  const row = rows?.[0];
  if (row === undefined) return null;
  const { scope, first_block: firstBlock, block, at } = row;
  return { scope, firstBlock, position: { block, timestamp: new Date(at * 1000) } };
}

const activityQuery = (views: string): string => `
  select coalesce(sum(paid), 0)::int as settled_payments, ${DISTINCT} as distinct_counterparties, max(last_at)::float8 as last_at
  from ${views}.wallet_day ${seenBefore("$2::int")}
  where wallet = ${keyOf("$1")} and day between $2 and $3`;

const windowAt = (now: Date): DayWindow => {
  const today = Math.floor(now.getTime() / DAY_MS);
  return { first: today - ACTIVITY_DAYS + 1, today, now };
};

interface DayWindow {
  readonly first: number;
  readonly today: number;
  readonly now: Date;
}

function renderActivity(row: ActivityRow, { first, today, now }: DayWindow, { scope, firstBlock }: Reach): Activity {
  const isoDay = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);
  return {
    settledPayments: row.settled_payments,
    distinctCounterparties: row.distinct_counterparties,
    // A block's timestamp may be slightly ahead of this machine's clock.
    lastSeenDays: row.last_at === null ? null : Math.max(0, Math.floor((now.getTime() - row.last_at * 1000) / DAY_MS)),
    firstDay: isoDay(first),
    lastDay: isoDay(today),
    scope,
    firstBlock,
  };
}

import type pg from "pg";
import { UNATTRIBUTED_FAILS } from "../../packages/verifier/src/tlog/wallet-log.ts";
import { aboutWallet, notReversed, type Product, VALID_FOR_DAYS } from "../certificates/index.ts";
import { ACTIVE_PAYMENTS, PARKED_PAYMENTS } from "../payments/index.ts";
import { change, hex, named } from "../platform/db/connection.ts";
import { type Counted, mergeCounters, readCounters, sumThrough } from "../platform/db/counters.ts";
import { networkOfChain } from "../platform/networks.ts";
import type { WebOrigin } from "../platform/web/target.ts";
import { IN_SITE, REQUEST, STANDS } from "../sellers/index.ts";
import { type BoardRow, MINIMUM_WALLETS, type Position, type SellerRow, type Walk } from "./board.ts";
import type { SellerTotals, Totals } from "./statistics.ts";

interface RowColumns {
  id: string;
  product: Product;
  level: string;
  wallet: Buffer;
  issued_at: Date;
  valid_until: Date;
  products: string[];
}

const DAY_MS = 86_400_000;
/** Sorts above every position on the board. */
const ABOVE_ALL = ["infinity", ""] as const;
const place = (position: Position | undefined) => (position ? [position.issuedAt, position.id] : ABOVE_ALL);

/**
 * $1 is now, $2 the earliest issue time of a fresh certificate, $3 and $4 the position after which the page begins, $5 and
 * $6 the top of the walk, $7 the number of rows, and $8 the product. Each step of the recursion finds the next certificate
 * that is not outranked by another one of the same wallet. A generic plan for a single ordered query would sort all fresh
 * certificates.
 */
function certifiedQuery(product: Product | null): string {
  const ofProduct = (c: string) => (product === null ? "" : `AND ${c}.product = $8`);
  const fresh = (c: string) => `${c}.issued_at > $2 AND ${c}.valid_until > $1`;
  return `WITH RECURSIVE walk AS (
  SELECT 0 AS step, $3::timestamptz AS issued_at, $4::text AS id, NULL AS product, NULL AS level, NULL::bytea AS wallet, NULL::timestamptz AS valid_until
  UNION ALL
  SELECT w.step + 1, found.* FROM walk w CROSS JOIN LATERAL (
    SELECT c.issued_at, c.id, c.product, c.level, c.wallet, c.valid_until FROM certificate c
    WHERE c.result = 'pass' ${ofProduct("c")} AND ${fresh("c")} AND (c.issued_at, c.id) < (w.issued_at, w.id) AND ${notReversed("c")}
      AND NOT EXISTS (SELECT FROM certificate f
        WHERE f.wallet = c.wallet AND f.result = 'fail' AND ${aboutWallet("f")} AND f.valid_until > $1 AND ${notReversed("f")} OFFSET 0)
      AND NOT EXISTS (SELECT FROM certificate n
        WHERE n.wallet = c.wallet AND n.result = 'pass' ${ofProduct("n")} AND n.issued_at >= c.issued_at AND n.valid_until > $1
          AND (n.issued_at, n.id) > (c.issued_at, c.id) AND (n.issued_at, n.id) <= ($5::timestamptz, $6::text)
          AND ${notReversed("n")} OFFSET 0)
    ORDER BY c.issued_at DESC, c.id DESC LIMIT 1) AS found
  WHERE w.step < $7
)
SELECT id, product, level, wallet, issued_at, valid_until, ARRAY(SELECT DISTINCT p.product FROM certificate p
  WHERE p.wallet = walk.wallet AND p.result = 'pass' AND ${fresh("p")} AND ${notReversed("p")}) AS products
FROM walk WHERE step > 0 ORDER BY step`;
}

export type BoardReader = ReturnType<typeof createBoardReader>;

export function createBoardReader(pool: pg.Pool) {
  return {
    /** Returns the wallets that are verified at `now`, by their newest current PASS, newest first. */
    async certified({ now, count, product, walk }: BoardQuery): Promise<readonly BoardRow[]> {
      const since = new Date(now.getTime() - VALID_FOR_DAYS * DAY_MS);
      const { rows } = await pool.query<RowColumns>({
        name: product === null ? "board" : "board-product",
        text: certifiedQuery(product),
        values: [now, since, ...place(walk?.after), ...place(walk?.top), count, ...(product === null ? [] : [product])],
      });
      return rows.map(boardRow);
    },
    /** Returns the verified sellers, in the same order. */
    async sellers({ now, count, walk }: Omit<BoardQuery, "product">): Promise<readonly SellerRow[]> {
      const values = [now, ...place(walk?.after), ...place(walk?.top), count];
      const { rows } = await pool.query<SellerColumns>(named(CERTIFIED_SELLERS, values));
      return rows.map(sellerRow);
    },
  };
}

const boardRow = (row: RowColumns): BoardRow => ({
  id: row.id,
  product: row.product,
  level: row.level,
  wallet: hex(row.wallet),
  issuedAt: row.issued_at,
  validUntil: row.valid_until,
  products: row.products,
});

/** A request counts at most this many certificates first, which takes up to a second. The job counts the rest. */
const COUNTED_TOGETHER = 1_000;

const COUNT = "SELECT count_certificates($1, $2, $3) AS taken";

const countCertificates = async (pool: pg.Pool, most: number): Promise<number> => {
  const { rows } = await pool.query<{ taken: number }>(named(COUNT, [most, MINIMUM_WALLETS, UNATTRIBUTED_FAILS]));
  return rows[0]?.taken ?? 0;
};

/** Merges moments in the past into one row. A late change adds its moment again, with the difference. */
const FORGET_MOMENTS = `WITH past AS (DELETE FROM counter WHERE name = 'certified' AND part <> ''
    AND part < to_char((now() - interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD') RETURNING count)
  INSERT INTO counter_change (name, part, count) SELECT 'certified', '', sum(count) FROM past HAVING count(*) > 0`;

/** Creates the job that counts all uncounted certificates and adds all changes to the totals. */
export const createCounting = (pool: pg.Pool) => async (): Promise<void> => {
  while ((await countCertificates(pool, COUNTED_TOGETHER)) === COUNTED_TOGETHER);
  while ((await mergeCounters(pool)) > 0);
  await change(pool, FORGET_MOMENTS);
};

const COUNTERS = [
  "tested",
  "wallets",
  "passed",
  "passed_wallets",
  "failed",
  "failed_wallets",
  "day",
  "payment",
] as const;

/** Days before $1 are merged into a null day. The wallets of a day are counted only up to the sample's size. */
const SAMPLED_DAYS = `SELECT CASE WHEN day >= $1 THEN to_char(day, 'YYYY-MM-DD') END AS day, count(DISTINCT wallet)::int AS wallets
  FROM certificate_day_wallet GROUP BY 1`;

/** Payments that are not in `counter` yet, because a reorganization may undo them. Each part reads an index of unfinished rows. */
const UNFINAL = `SELECT chain, count(*) AS settled, sum(value) AS volume FROM (
    SELECT chain, value FROM payment WHERE ${ACTIVE_PAYMENTS} AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL
    UNION ALL SELECT chain, value FROM payment WHERE ${PARKED_PAYMENTS} AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL) AS paid
  GROUP BY chain`;

export type TotalsReader = ReturnType<typeof createTotalsReader>;

/** Reads running totals, at a cost that does not grow with history. */
export const createTotalsReader = (pool: pg.Pool) => ({
  /**
   * One query at a time, to use one connection and leave the others to payments.
   * @param firstDay midnight UTC of the first day to count individually
   */
  async totals(now: Date, firstDay: Date): Promise<Totals> {
    await countCertificates(pool, COUNTED_TOGETHER);
    const counters = await readCounters(pool, COUNTERS);
    const certified = await sumThrough(pool, "certified", now.toISOString().slice(0, "2026-01-01T00:00".length));
    const sampled = await pool.query<{ day: string | null; wallets: number }>(named(SAMPLED_DAYS, [firstDay]));
    const unfinal = await pool.query<{ chain: number; settled: string; volume: string }>(named(UNFINAL, []));
    const sellers = await sellerTotals(pool, now);
    const walletsOf = new Map(sampled.rows.map(({ day, wallets }) => [day, wallets]));
    const days = [...counters.day].map(([day, { count }]) => ({
      day,
      certificates: count,
      wallets: walletsOf.get(day) ?? 0,
    }));
    const isShown = ({ day }: { readonly day: string }) => day >= firstDay.toISOString().slice(0, 10);
    const earlier = days.filter((one) => !isShown(one));
    return {
      wallets: { tested: counters.tested.get("")?.count ?? 0, certified },
      products: [...counters.wallets.keys()]
        .map((product) => productTotals(product, counters))
        .filter(({ passed, failed }) => passed.certificates + failed.certificates > 0),
      sellers,
      payments: paymentTotals(counters.payment, unfinal.rows),
      days: days.filter(isShown),
      earlier: {
        certificates: earlier.reduce((sum, { certificates }) => sum + certificates, 0),
        wallets: walletsOf.get(null) ?? 0,
      },
    };
  },
});

type Counters = Record<(typeof COUNTERS)[number], ReadonlyMap<string, Counted>>;

function productTotals(product: string, counters: Counters): Totals["products"][number] {
  const of = (name: keyof Counters): number => counters[name].get(product)?.count ?? 0;
  return {
    product,
    wallets: of("wallets"),
    passed: { certificates: of("passed"), wallets: of("passed_wallets") },
    failed: { certificates: of("failed"), wallets: of("failed_wallets") },
  };
}

function paymentTotals(
  final: Counters["payment"],
  unfinal: readonly { readonly chain: number; readonly settled: string; readonly volume: string }[],
): Totals["payments"] {
  const chains = new Set([...[...final.keys()].map(Number), ...unfinal.map(({ chain }) => chain)]);
  return [...chains].map((chain) => {
    const counted = final.get(String(chain));
    const open = unfinal.find((one) => one.chain === chain);
    return {
      network: networkOfChain(chain),
      settled: (counted?.count ?? 0) + Number(open?.settled ?? 0),
      volume: (counted?.amount ?? 0n) + BigInt(open?.volume ?? 0),
    };
  });
}

interface BoardQuery {
  readonly now: Date;
  readonly count: number;
  /** Only wallets that currently pass this product, each with its newest PASS for it; null for any product. */
  readonly product: Product | null;
  /** The end of the previous page, or null for the first page. */
  readonly walk: Walk | null;
}

const sellerRow = (row: SellerColumns): SellerRow => ({
  id: row.id,
  origin: row.origin,
  prefix: row.site,
  payTo: hex(row.pay_to),
  level: row.level,
  issuedAt: row.ended_at,
  validUntil: row.valid_until,
  requests: Number(row.requests),
});

/** Counts the published exams that were not withdrawn or reversed. */
async function sellerTotals(pool: pg.Pool, now: Date): Promise<SellerTotals> {
  const { rows } = await pool.query<SellerTotalColumns>(named(SELLER_TOTALS, [now]));
  const [row] = rows;
  const counted = (name: keyof SellerTotalColumns): number => Number(row?.[name] ?? 0);
  return {
    tested: counted("tested"),
    certified: counted("certified"),
    passed: { certificates: counted("passed"), wallets: counted("passed_origins") },
    failed: { certificates: counted("failed"), wallets: counted("failed_origins") },
  };
}

/** The same rule as `standings`: for each request in a site's record, the newest exam that was not withdrawn or reversed. $1 is now. */
const COUNTING = `exams AS MATERIALIZED (
  SELECT r.exam, r.origin, r.pay_to, r.level, r.ended_at, r.valid_until, e.path_prefix, ${REQUEST}
  FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam
  WHERE r.is_public AND r.valid_until > $1 AND ${STANDS}),
fresh AS (SELECT s.site, x.* FROM (SELECT DISTINCT origin, path_prefix AS site FROM exams) s
  JOIN exams x ON x.origin = s.origin AND ${IN_SITE("x", "s.origin", "s.site")}),
counting AS (SELECT DISTINCT ON (origin, site, method, url, body, content_type) * FROM fresh
  ORDER BY origin, site, method, url, body, content_type, ended_at DESC, exam DESC),
verified AS (SELECT origin, site, count(*) AS requests FROM counting GROUP BY origin, site
  HAVING bool_and(level IS NOT NULL))`;

/**
 * $2 and $3 are the position after which the page begins, $4 and $5 the top of the walk, $6 the number of rows. A seller is
 * at the position of its newest PASS below the top, so a seller that is examined during the walk is not missed or repeated.
 */
const CERTIFIED_SELLERS = `WITH ${COUNTING}, placed AS (
  SELECT DISTINCT ON (origin, path_prefix) fresh.*, verified.requests FROM fresh JOIN verified USING (origin, site)
  WHERE site = path_prefix AND level IS NOT NULL AND (ended_at, exam) <= ($4::timestamptz, $5::text)
  ORDER BY origin, path_prefix, ended_at DESC, exam DESC)
SELECT exam AS id, origin, site, pay_to, level, ended_at, valid_until, requests FROM placed
WHERE (ended_at, exam) < ($2::timestamptz, $3::text) ORDER BY ended_at DESC, exam DESC LIMIT $6`;

const SELLER_TOTALS = `WITH ${COUNTING}, valid AS (
  SELECT (r.origin, e.path_prefix) AS origin, r.level IS NOT NULL AS passed
  FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam WHERE r.is_public AND ${STANDS})
SELECT count(DISTINCT origin) AS tested, (SELECT count(*) FROM verified) AS certified,
  count(*) FILTER (WHERE passed) AS passed, count(DISTINCT origin) FILTER (WHERE passed) AS passed_origins,
  count(*) FILTER (WHERE NOT passed) AS failed, count(DISTINCT origin) FILTER (WHERE NOT passed) AS failed_origins
FROM valid`;

interface SellerColumns {
  id: string;
  origin: WebOrigin;
  site: string;
  pay_to: Buffer;
  level: string;
  ended_at: Date;
  valid_until: Date;
  requests: string;
}

type SellerTotalColumns = Record<
  "tested" | "certified" | "passed" | "passed_origins" | "failed" | "failed_origins",
  string
>;

import type pg from "pg";
import { aboutWallet, notReversed, type Product, VALID_FOR_DAYS } from "../certificates/index.ts";
import { hex, named } from "../platform/db/connection.ts";
import { networkOfChain } from "../platform/networks.ts";
import type { WebOrigin } from "../platform/web/target.ts";
import { IN_SITE, REQUEST, STANDS } from "../sellers/index.ts";
import type { BoardRow, Count, Position, SellerRow, Walk } from "./board.ts";
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
/** Sorts above every place on the board. */
const ABOVE_ALL = ["infinity", ""] as const;
const place = (position: Position | undefined) => (position ? [position.issuedAt, position.id] : ABOVE_ALL);

/**
 * $1 now, $2 when the oldest fresh certificate can have been issued, $3 and $4 the place after which the page begins,
 * $5 and $6 the top of the walk, $7 how many rows, $8 the product. Each step of the recursion finds one row: the next
 * certificate that is not outranked by another of the same wallet. As a single ordered query, a plan made without the
 * parameters' values would sort all fresh certificates.
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

export function createBoardReader(pool: pg.Pool): BoardReader {
  return {
    async certified({ now, count, product, walk }) {
      const since = new Date(now.getTime() - VALID_FOR_DAYS * DAY_MS);
      const { rows } = await pool.query<RowColumns>({
        name: product === null ? "board" : "board-product",
        text: certifiedQuery(product),
        values: [now, since, ...place(walk?.after), ...place(walk?.top), count, ...(product === null ? [] : [product])],
      });
      return rows.map(boardRow);
    },
    sellers: (query) => certifiedSellers(pool, query),
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

/** Reads each table in one pass and keeps the few reversals in memory meanwhile. */
const STANDING = `reversed AS MATERIALIZED (SELECT chain, asset, payer, nonce FROM settlement_mark WHERE kind = 'reversed'),
standing AS (SELECT * FROM certificate c WHERE NOT EXISTS (SELECT FROM reversed r
  WHERE r.payer = c.wallet AND r.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND r.chain = c.chain AND r.asset = c.asset))`;

const BY_WALLET_AND_PRODUCT = `WITH ${STANDING}, tally AS MATERIALIZED (
  SELECT product, wallet, count(*) FILTER (WHERE result = 'pass') AS passed, count(*) FILTER (WHERE result = 'fail') AS failed,
    bool_or(result = 'pass' AND valid_until > $1) AS passes, bool_or(result = 'fail' AND ${aboutWallet("standing")} AND valid_until > $1) AS fails
  FROM standing GROUP BY product, wallet)
SELECT product, count(*) AS wallets, sum(passed) AS passed, count(*) FILTER (WHERE passed > 0) AS passed_wallets,
  sum(failed) AS failed, count(*) FILTER (WHERE failed > 0) AS failed_wallets, NULL AS certified FROM tally GROUP BY product
UNION ALL
SELECT NULL, count(*), NULL, NULL, NULL, NULL, count(*) FILTER (WHERE passes AND NOT fails)
  FROM (SELECT bool_or(passes) AS passes, bool_or(fails) AS fails FROM tally GROUP BY wallet) AS agents`;

/** Certificates from before the first of the days have a null day. */
const BY_DAY = `WITH ${STANDING}
SELECT CASE WHEN issued_at >= $1 THEN to_char(issued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') END AS day,
  count(*) AS certificates, count(DISTINCT wallet) AS wallets
  FROM standing WHERE issued_at <= $2 GROUP BY 1`;

const BY_NETWORK = `SELECT chain, count(*) AS settled, sum(value) AS volume FROM payment
  WHERE state IN ('settled', 'fulfilled') AND tx IS NOT NULL GROUP BY chain`;

type Texts<Name extends string> = Record<Name, string>;
type DayColumns = Texts<"certificates" | "wallets">;
type ProductColumns = Texts<"wallets" | "passed" | "passed_wallets" | "failed" | "failed_wallets">;

export const createTotalsReader = (pool: pg.Pool): TotalsReader => ({
  // One at a time: counting then uses one connection and leaves the rest to payments.
  async totals(now, firstDay) {
    const tallies = await pool.query<ProductColumns & { product: string | null; certified: string | null }>(
      BY_WALLET_AND_PRODUCT,
      [now],
    );
    const days = await pool.query<DayColumns & { day: string | null }>(BY_DAY, [firstDay, now]);
    const payments = await pool.query<Texts<"settled" | "volume"> & { chain: number }>(BY_NETWORK);
    const sellers = await sellerTotals(pool, now);
    const agents = tallies.rows.find(({ product }) => product === null);
    return {
      wallets: { tested: Number(agents?.wallets ?? 0), certified: Number(agents?.certified ?? 0) },
      products: tallies.rows.flatMap((row) => (row.product === null ? [] : [productTotals(row.product, row)])),
      sellers,
      payments: payments.rows.map(({ chain, settled, volume }) => ({
        network: networkOfChain(chain),
        settled: Number(settled),
        volume: BigInt(volume),
      })),
      days: days.rows.flatMap(({ day, ...counted }) => (day === null ? [] : [{ day, ...countOf(counted) }])),
      earlier: countOf(days.rows.find(({ day }) => day === null)),
    } satisfies Totals;
  },
});

const countOf = ({ certificates, wallets }: DayColumns = { certificates: "0", wallets: "0" }): Count => ({
  certificates: Number(certificates),
  wallets: Number(wallets),
});

const productTotals = (product: string, row: ProductColumns): Totals["products"][number] => ({
  product,
  wallets: Number(row.wallets),
  passed: { certificates: Number(row.passed), wallets: Number(row.passed_wallets) },
  failed: { certificates: Number(row.failed), wallets: Number(row.failed_wallets) },
});

export interface BoardQuery {
  readonly now: Date;
  /** The maximum number of rows. */
  readonly count: number;
  /** Only wallets that currently pass this product, each with its newest PASS for it; null for any product. */
  readonly product: Product | null;
  /** Where the previous page ended; null for the first page. */
  readonly walk: Walk | null;
}

/** What the board reads: wallets verified at `now`, by their newest current PASS, newest first. */
export interface BoardReader {
  certified(query: BoardQuery): Promise<readonly BoardRow[]>;
  /** Verified sellers, in the same order. */
  sellers(query: Omit<BoardQuery, "product">): Promise<readonly SellerRow[]>;
}

/** What the statistics read. It scans every certificate, so it runs rarely. */
export interface TotalsReader {
  /** `firstDay` is midnight UTC of the first day to count individually. */
  totals(now: Date, firstDay: Date): Promise<Totals>;
}

/** Sellers that are verified now. */
async function certifiedSellers(
  pool: pg.Pool,
  { now, count, walk }: Omit<BoardQuery, "product">,
): Promise<readonly SellerRow[]> {
  const values = [now, ...sellerPlace(walk?.after), ...sellerPlace(walk?.top), count];
  const { rows } = await pool.query<SellerColumns>(named(CERTIFIED_SELLERS, values));
  return rows.map((row) => ({
    id: row.id,
    origin: row.origin,
    prefix: row.site,
    payTo: hex(row.pay_to),
    level: row.level,
    issuedAt: row.ended_at,
    validUntil: row.valid_until,
    requests: Number(row.requests),
  }));
}

/** All published exams, without the withdrawn and the reversed ones. */
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

/** As `standings` says: of each request in a site's record the newest exam that was neither withdrawn nor reversed. $1 is now. */
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
 * $2 and $3 the place after which the page begins, $4 and $5 the top of the walk, $6 how many rows. A seller's place is
 * that of its newest PASS below the top, so one that is examined during the walk is neither missed nor repeated.
 */
const CERTIFIED_SELLERS = `WITH ${COUNTING}, placed AS (
  SELECT DISTINCT ON (origin, path_prefix) fresh.*, verified.requests FROM fresh JOIN verified USING (origin, site)
  WHERE site = path_prefix AND level IS NOT NULL AND (ended_at, exam) <= ($4::timestamptz, $5::text)
  ORDER BY origin, path_prefix, ended_at DESC, exam DESC)
SELECT exam AS id, origin, site, pay_to, level, ended_at, valid_until, requests FROM placed
WHERE (ended_at, exam) < ($2::timestamptz, $3::text) ORDER BY ended_at DESC, exam DESC LIMIT $6`;

const SELLER_TOTALS = `WITH ${COUNTING}, standing AS (
  SELECT (r.origin, e.path_prefix) AS origin, r.level IS NOT NULL AS passed
  FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam WHERE r.is_public AND ${STANDS})
SELECT count(DISTINCT origin) AS tested, (SELECT count(*) FROM verified) AS certified,
  count(*) FILTER (WHERE passed) AS passed, count(DISTINCT origin) FILTER (WHERE passed) AS passed_origins,
  count(*) FILTER (WHERE NOT passed) AS failed, count(DISTINCT origin) FILTER (WHERE NOT passed) AS failed_origins
FROM standing`;

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

export type SellerTotalColumns = Record<
  "tested" | "certified" | "passed" | "passed_origins" | "failed" | "failed_origins",
  string
>;

const sellerPlace = (position: Walk["top"] | undefined) => (position ? [position.issuedAt, position.id] : ABOVE_ALL);

import type pg from "pg";
import { VALID_FOR_DAYS } from "../certificates/certificate.ts";
import type { Product } from "../certificates/products.ts";
import { aboutWallet, notReversed } from "../certificates/store.ts";
import { hex } from "../platform/db/connection.ts";
import { networkOfChain } from "../platform/networks.ts";
import { certifiedSellers, sellerTotals } from "../sellers/published/store.ts";
import type { BoardRow, Count, Position, SellerRow, Walk } from "./board.ts";
import type { Totals } from "./statistics.ts";

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

import type pg from "pg";
import type { SellerRow, Walk } from "../board/board.ts";
import type { BoardQuery } from "../board/ports.ts";
import type { SellerTotals } from "../board/statistics.ts";
import type { WebOrigin } from "../platform/web/web-origin.ts";
import { hex, named } from "../platform/db/connection.ts";

interface RowColumns {
  id: string;
  origin: WebOrigin;
  site: string;
  pay_to: Buffer;
  level: string;
  ended_at: Date;
  valid_until: Date;
  requests: string;
}

/** An exam that was neither withdrawn nor reversed. */
export const STANDS = `NOT EXISTS (SELECT FROM seller_exam_correction c WHERE c.exam = r.exam)
    AND NOT EXISTS (SELECT FROM seller_exam_gone g WHERE g.exam = r.exam)`;

/** Two exams are of the same request if nothing that is sent differs. */
export const REQUEST = "e.method, e.url, e.body, CASE WHEN e.body IS NOT NULL THEN e.content_type END AS content_type";

/** Whether an exam is in the record of a site: one of its own, or one of a wider site about a URL in this one. */
export const IN_SITE = (exam: string, origin: string, prefix: string): string =>
  `(${exam}.path_prefix = ${prefix} OR (starts_with(${prefix}, ${exam}.path_prefix)
    AND starts_with(split_part(${exam}.url, '?', 1) || '/', ${origin} || ${prefix})))`;

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
const CERTIFIED = `WITH ${COUNTING}, placed AS (
  SELECT DISTINCT ON (origin, path_prefix) fresh.*, verified.requests FROM fresh JOIN verified USING (origin, site)
  WHERE site = path_prefix AND level IS NOT NULL AND (ended_at, exam) <= ($4::timestamptz, $5::text)
  ORDER BY origin, path_prefix, ended_at DESC, exam DESC)
SELECT exam AS id, origin, site, pay_to, level, ended_at, valid_until, requests FROM placed
WHERE (ended_at, exam) < ($2::timestamptz, $3::text) ORDER BY ended_at DESC, exam DESC LIMIT $6`;

/** Sorts above every place on the board. */
const ABOVE_ALL = ["infinity", "~"] as const;
const place = (position: Walk["top"] | undefined) => (position ? [position.issuedAt, position.id] : ABOVE_ALL);

/** Sellers that are verified now. */
export async function certifiedSellers(
  pool: pg.Pool,
  { now, count, walk }: Omit<BoardQuery, "product">,
): Promise<readonly SellerRow[]> {
  const values = [now, ...place(walk?.after), ...place(walk?.top), count];
  const { rows } = await pool.query<RowColumns>(named(CERTIFIED, values));
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

const TOTALS = `WITH ${COUNTING}, standing AS (
  SELECT (r.origin, e.path_prefix) AS origin, r.level IS NOT NULL AS passed
  FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam WHERE r.is_public AND ${STANDS})
SELECT count(DISTINCT origin) AS tested, (SELECT count(*) FROM verified) AS certified,
  count(*) FILTER (WHERE passed) AS passed, count(DISTINCT origin) FILTER (WHERE passed) AS passed_origins,
  count(*) FILTER (WHERE NOT passed) AS failed, count(DISTINCT origin) FILTER (WHERE NOT passed) AS failed_origins
FROM standing`;

type TotalColumns = Record<"tested" | "certified" | "passed" | "passed_origins" | "failed" | "failed_origins", string>;

/** All published exams, without the withdrawn and the reversed ones. */
export async function sellerTotals(pool: pg.Pool, now: Date): Promise<SellerTotals> {
  const { rows } = await pool.query<TotalColumns>(named(TOTALS, [now]));
  const [row] = rows;
  const counted = (name: keyof TotalColumns): number => Number(row?.[name] ?? 0);
  return {
    tested: counted("tested"),
    certified: counted("certified"),
    passed: { certificates: counted("passed"), wallets: counted("passed_origins") },
    failed: { certificates: counted("failed"), wallets: counted("failed_origins") },
  };
}

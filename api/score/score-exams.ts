import type pg from "pg";
import type { ScoredExam, ScoreExams } from "./score-sources.ts";
import { bytes, named } from "../platform/db/connection.ts";
import { REQUEST, STANDS } from "../sellers/seller-board.ts";

interface Columns {
  place: number;
  id: string;
  origin: string;
  level: "full" | "safe" | null;
  ended_at: Date;
  valid_until: Date;
}

/**
 * As `payeeExams` says, and of these the newest. $2 is now. The payee's index is read, of each
 * wallet no more than what is fresh.
 */
const NEWEST = `SELECT k.place::int, told.* FROM unnest($1::bytea[]) WITH ORDINALITY k(wallet, place)
  CROSS JOIN LATERAL (
    SELECT DISTINCT ON (level IS NULL) id, origin, level, ended_at, valid_until FROM (
      SELECT DISTINCT ON (e.method, e.url, e.body, content_type) r.exam AS id, r.origin, r.level, r.ended_at, r.valid_until,
        ${REQUEST}
      FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam
      WHERE r.is_public AND r.pay_to = k.wallet AND e.payer = k.wallet AND r.valid_until > $2 AND ${STANDS}
      ORDER BY e.method, e.url, e.body, content_type, r.ended_at DESC, r.exam DESC) counting
    WHERE level IS NOT NULL ORDER BY level IS NULL, ended_at DESC, id DESC) told`;

/** What the score reads from exams of sellers. */
export const createScoreExams = (pool: pg.Pool): ScoreExams => ({
  async newest(wallets, now) {
    const { rows } = await pool.query<Columns>(named(NEWEST, [wallets.map(bytes), now]));
    return wallets.map((_, index) => rows.filter(({ place }) => place === index + 1).map(examOf));
  },
});

const examOf = ({ id, origin, level, ended_at, valid_until }: Columns): ScoredExam => ({
  ...{ id, origin, level, control: "file", issuedAt: ended_at, validUntil: valid_until },
  result: level === null ? "fail" : "pass",
});

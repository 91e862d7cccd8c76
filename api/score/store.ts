import type pg from "pg";
import { aboutWallet, notReversed, PRODUCT_MENU, type Product, type Result } from "../certificates/index.ts";
import { bytes, named } from "../platform/db/connection.ts";
import type { Address } from "../platform/wallet.ts";
import { REQUEST, STANDS } from "../sellers/index.ts";
import type { ScoredCertificate, ScoredExam } from "./read-scores.ts";

interface Columns {
  place: number;
  id: string;
  product: Product;
  result: Result;
  issued_at: Date;
  valid_until: Date;
}

const SCORED = PRODUCT_MENU.map((product) => `'${product}'`);

/**
 * The newest certificate per product and result that is about the wallet and not reversed: eight look-ups per wallet,
 * however many certificates it has.
 */
const NEWEST_CERTIFICATES = `SELECT k.place::int, c.id, c.product, c.result, c.issued_at, c.valid_until
  FROM unnest($1::bytea[]) WITH ORDINALITY k(wallet, place)
  CROSS JOIN unnest(ARRAY[${SCORED}]) product
  CROSS JOIN unnest(ARRAY['pass', 'fail']) result
  CROSS JOIN LATERAL (
    SELECT * FROM certificate o WHERE o.wallet = k.wallet AND o.product = product.product AND o.result = result.result AND ${aboutWallet("o")}
      AND ${notReversed("o")}
    ORDER BY o.issued_at DESC LIMIT 1) c`;

export type ScoreCertificates = ReturnType<typeof createScoreCertificates>;

/** Reads the score's facts from the service's own certificates. */
export const createScoreCertificates = (pool: pg.Pool) => ({
  /** Returns the newest certificate per product and result that is not reversed, for each wallet in the given order. */
  async newest(wallets: readonly Address[]): Promise<readonly (readonly ScoredCertificate[])[]> {
    const { rows } = await pool.query<Columns>({
      name: "score-certificates",
      text: NEWEST_CERTIFICATES,
      values: [wallets.map(bytes)],
    });
    return wallets.map((_, index) =>
      rows
        .filter(({ place }) => place === index + 1)
        .map(({ id, product, result, issued_at, valid_until }) => ({
          id,
          product,
          result,
          issuedAt: issued_at,
          validUntil: valid_until,
        })),
    );
  },
});

interface ExamColumns {
  place: number;
  id: string;
  origin: string;
  level: "full" | "safe";
  ended_at: Date;
  valid_until: Date;
}

/**
 * The newest PASS of the exams that `payeeExams` selects. $2 is the current time. Reads the payee's index, and only the
 * fresh exams of each wallet.
 */
const NEWEST_EXAMS = `SELECT k.place::int, exam.* FROM unnest($1::bytea[]) WITH ORDINALITY k(wallet, place)
  CROSS JOIN LATERAL (
    SELECT id, origin, level, ended_at, valid_until FROM (
      SELECT DISTINCT ON (e.method, e.url, e.body, content_type) r.exam AS id, r.origin, r.level, r.ended_at, r.valid_until,
        ${REQUEST}
      FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam
      WHERE r.is_public AND r.pay_to = k.wallet AND e.payer = k.wallet AND r.valid_until > $2 AND ${STANDS}
      ORDER BY e.method, e.url, e.body, content_type, r.ended_at DESC, r.exam DESC) counting
    WHERE level IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT 1) exam`;

export type ScoreExams = ReturnType<typeof createScoreExams>;

/** Reads the score's facts from exams of sellers. */
export const createScoreExams = (pool: pg.Pool) => ({
  /** Returns the exams behind `seller_exams`, for each wallet in the given order. */
  async newest(wallets: readonly Address[], now: Date): Promise<readonly (readonly ScoredExam[])[]> {
    const { rows } = await pool.query<ExamColumns>(named(NEWEST_EXAMS, [wallets.map(bytes), now]));
    return wallets.map((_, index) => rows.filter(({ place }) => place === index + 1).map(examOf));
  },
});

const examOf = ({ id, origin, level, ended_at, valid_until }: ExamColumns): ScoredExam => ({
  ...{ id, origin, level, result: "pass", control: "file", issuedAt: ended_at, validUntil: valid_until },
});

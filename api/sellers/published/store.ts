import type pg from "pg";
import type { EntryReaders } from "../../log/index.ts";
import { bytes, named } from "../../platform/db/connection.ts";
import type { Address } from "../../platform/wallet.ts";
import { ENDED, type ExamColumns, parsePublished } from "../exam-store.ts";
import type { PublishedExam, Site } from "../record.ts";
import { issuedSellerCertificate } from "./document.ts";

/** Selects exams that have not been withdrawn or reversed. */
export const STANDS = `NOT EXISTS (SELECT FROM seller_exam_correction c WHERE c.exam = r.exam)
    AND NOT EXISTS (SELECT FROM seller_exam_gone g WHERE g.exam = r.exam)`;

/** Two exams are of the same request if nothing that is sent differs. */
export const REQUEST = "e.method, e.url, e.body, CASE WHEN e.body IS NOT NULL THEN e.content_type END AS content_type";

/**
 * Tests whether an exam is in the record of a site: an exam of the site, or one of a wider site about a URL in this
 * one.
 */
export const IN_SITE = (exam: string, origin: string, prefix: string): string =>
  `(${exam}.path_prefix = ${prefix} OR (starts_with(${prefix}, ${exam}.path_prefix)
    AND starts_with(split_part(${exam}.url, '?', 1) || '/', ${origin} || ${prefix})))`;

const NEWEST = 100;
/** $2 is the current time. All fresh exams are read, however many newer ones there are. */
const of = (which: string): string => {
  const all = `SELECT r.exam FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam WHERE r.is_public AND ${which}`;
  return `${ENDED} AND r.exam IN ((${all} ORDER BY r.ended_at DESC LIMIT ${NEWEST}) UNION ${all} AND r.valid_until > $2)
  ORDER BY r.ended_at DESC, r.exam DESC`;
};
const OF_SITE = of(`r.origin = $1 AND ${IN_SITE("e", "$1", "$3")}`);
const OF_PAYEE = of("r.pay_to = $1 AND e.payer = $1");
const CORRECT = "INSERT INTO seller_exam_correction (exam, reason) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const NAMED = `${ENDED} AND r.exam = ANY($1)`;

/** Creates the reader of published exams, by site and by payee. */
export function createPublishedExamReader(pool: pg.Pool) {
  const read = async (text: string, values: readonly unknown[]): Promise<readonly PublishedExam[]> =>
    (await pool.query<ExamColumns>(named(text, values))).rows.map(parsePublished);
  return {
    /**
     * Returns the newest 100 exams of a site, and every fresh one. They include exams of a wider site of the same origin
     * if the URL they examined is in this one, so that a seller cannot escape a FAIL with a narrower site.
     */
    ofSite: ({ origin, prefix }: Site, now: Date) => read(OF_SITE, [origin, now, prefix]),
    /** Returns the newest 100 exams that this address bought and was paid in, and every fresh one. */
    ofPayee: (payTo: Address, now: Date) => read(OF_PAYEE, [bytes(payTo), now]),
  };
}

/** Creates the store of corrections. */
export const createCorrections = (pool: pg.Pool) => ({
  /** @returns whether it was added. The first correction is final */
  async correct(id: string, reason: string): Promise<boolean> {
    const { rowCount } = await pool.query(named(CORRECT, [id, reason]));
    return rowCount === 1;
  },
});

const CORRECTIONS = "SELECT exam, reason, at FROM seller_exam_correction WHERE exam = ANY($1)";

/** Reads certificates of sellers and their corrections as log entries. */
export const sellerEntries: EntryReaders = {
  async seller_certificate(ask, refs) {
    const { rows } = await ask<ExamColumns>(NAMED, [refs]);
    return new Map(
      rows
        .map(parsePublished)
        .map((exam) => [
          exam.order.id,
          { type: "seller_certificate", members: issuedSellerCertificate(exam), issuedAt: exam.result.endedAt },
        ]),
    );
  },
  async seller_correction(ask, refs) {
    const { rows } = await ask<{ exam: string; reason: string; at: Date }>(CORRECTIONS, [refs]);
    return new Map(rows.map(({ exam, reason, at }) => [exam, { type: "seller_correction", reason, correctedAt: at }]));
  },
};

/** The public exams in a site's record, newest first. */
export interface PublishedExams {
  readonly site: Site;
  readonly exams: readonly PublishedExam[];
}

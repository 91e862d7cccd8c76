import type pg from "pg";
import type { CorrectionStore, PublishedExamReader } from "../../seller-exam/published/published-exams.ts";
import type { EndedExam } from "../../seller-exam/record.ts";
import { bytes, named } from "./connection.ts";
import { ENDED, type ExamColumns, parseEnded } from "./exam-store.ts";

const NEWEST = 100;
/** $2 is now: whatever is fresh is read, however many newer ones there are. */
const of = (column: string): string => `${ENDED} AND r.exam IN (
  (SELECT exam FROM seller_exam_result WHERE is_public AND ${column} = $1 ORDER BY ended_at DESC LIMIT ${NEWEST})
  UNION SELECT exam FROM seller_exam_result WHERE is_public AND ${column} = $1 AND valid_until > $2)
  ORDER BY r.ended_at DESC, r.exam DESC`;
const OF_ORIGIN = of("origin");
const OF_PAYEE = of("pay_to");
const CORRECT = "INSERT INTO seller_exam_correction (exam, reason) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const NAMED = `${ENDED} AND r.exam = ANY($1)`;

/** Reads what is public of exams: of an origin, and of a payee. */
export function createPublishedExamReader(pool: pg.Pool): PublishedExamReader {
  const read = async (text: string, values: readonly unknown[]): Promise<readonly EndedExam[]> =>
    (await pool.query<ExamColumns>(named(text, values))).rows.map(parseEnded);
  return {
    ofOrigin: (origin, now) => read(OF_ORIGIN, [origin, now]),
    ofPayee: (payTo, now) => read(OF_PAYEE, [bytes(payTo), now]),
  };
}

/** Adds the statement that a result was wrong. */
export const createCorrections = (pool: pg.Pool): Pick<CorrectionStore, "correct"> => ({
  async correct(id, reason) {
    const { rowCount } = await pool.query(named(CORRECT, [id, reason]));
    return rowCount === 1;
  },
});

/** The published exams with these ids. */
export const readEndedExams = async (
  ask: (text: string, values: readonly unknown[]) => Promise<readonly ExamColumns[]>,
  ids: readonly string[],
): Promise<readonly EndedExam[]> => (await ask(NAMED, [ids])).map(parseEnded);

import type pg from "pg";
import type { CorrectionStore, PublishedExamReader } from "./published-exams.ts";
import type { EndedExam } from "../record.ts";
import { bytes, named } from "../../platform/db/connection.ts";
import { ENDED, type ExamColumns, parseEnded } from "../store.ts";
import { IN_SITE } from "../seller-board.ts";

const NEWEST = 100;
/** $2 is now: whatever is fresh is read, however many newer ones there are. */
const of = (which: string): string => {
  const all = `SELECT r.exam FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam WHERE r.is_public AND ${which}`;
  return `${ENDED} AND r.exam IN ((${all} ORDER BY r.ended_at DESC LIMIT ${NEWEST}) UNION ${all} AND r.valid_until > $2)
  ORDER BY r.ended_at DESC, r.exam DESC`;
};
const OF_SITE = of(`r.origin = $1 AND ${IN_SITE("e", "$1", "$3")}`);
const OF_PAYEE = of("r.pay_to = $1 AND e.payer = $1");
const CORRECT = "INSERT INTO seller_exam_correction (exam, reason) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const NAMED = `${ENDED} AND r.exam = ANY($1)`;

/** Reads what is public of exams: of a site, and of a payee. */
export function createPublishedExamReader(pool: pg.Pool): PublishedExamReader {
  const read = async (text: string, values: readonly unknown[]): Promise<readonly EndedExam[]> =>
    (await pool.query<ExamColumns>(named(text, values))).rows.map(parseEnded);
  return {
    ofSite: ({ origin, prefix }, now) => read(OF_SITE, [origin, now, prefix]),
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

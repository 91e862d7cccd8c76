import type pg from "pg";
import type { WatchedPayments } from "./payment-fate.ts";
import { hex, named } from "../platform/db/connection.ts";

const DUE = `WITH due AS (UPDATE seller_exam_watch SET due_at = now() + interval '15 s' WHERE exam IN (
    SELECT exam FROM seller_exam_watch WHERE due_at <= now() ORDER BY due_at LIMIT 50 FOR UPDATE SKIP LOCKED)
  RETURNING exam)
SELECT s.exam, s.payer, s.nonce, a.valid_before FROM due JOIN seller_exam_settlement s USING (exam)
  JOIN seller_exam_signature a ON a.nonce = s.nonce`;
const END = `WITH ended AS (DELETE FROM seller_exam_watch WHERE exam = $1 RETURNING exam)
INSERT INTO seller_exam_reversal (exam) SELECT exam FROM ended WHERE $2 ON CONFLICT DO NOTHING`;

interface DueColumns {
  exam: string;
  payer: Buffer;
  nonce: Buffer;
  valid_before: string;
}

/** Published exams whose payments are not final yet, for all processes. */
export const createExamWatch = (pool: pg.Pool): WatchedPayments => ({
  async due() {
    const { rows } = await pool.query<DueColumns>(named(DUE, []));
    return rows.map(({ exam, payer, nonce, valid_before }) => ({
      exam,
      payer: hex(payer),
      nonce: hex(nonce),
      validBefore: BigInt(valid_before),
    }));
  },
  async end(exam, fate) {
    await pool.query(named(END, [exam, fate === "reversed"]));
  },
});

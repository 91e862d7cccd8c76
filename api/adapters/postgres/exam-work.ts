import { randomUUID } from "node:crypto";
import type pg from "pg";
import { NETWORKS } from "../../kernel/networks.ts";
import type { ExamWork, StoredSignature, TakenExam } from "../../seller-exam/ports.ts";
import { COOLDOWN_MINUTES, EXAM_PRICE, MOST_RUNS, PAYMENTS_A_RUN } from "../../seller-exam/products.ts";
import { bytes, hex, inTransaction, named } from "./connection.ts";
import { type OrderColumns, parseOrder } from "./exam-store.ts";

const LEASE = "interval '30 s'";
const REST = `interval '${COOLDOWN_MINUTES} min'`;

/** What has a result and is still under work owes its buyer a refund, and keeps nobody waiting. */
const HAS_RESULT = (exam: string) => `EXISTS (SELECT FROM seller_exam_result x WHERE x.exam = ${exam}.exam)`;

/** Longer than what is signed stays valid. */
const KEPT_FOR = "interval '1 hour'";

const STANDING = `SELECT EXISTS (SELECT FROM seller_exam_work w WHERE origin = $1 AND NOT ${HAS_RESULT("w")}) AS is_open,
  greatest(0, ceil(extract(epoch FROM (SELECT max(ended_at) FROM seller_exam_result WHERE origin = $1) + ${REST} - now())))::int
    AS rests_for`;

/** What an open exam has signed counts once, as what it may still cost; so do refunds. */
const COMMITMENTS = `SELECT
  (SELECT count(DISTINCT origin)::int FROM seller_exam_work w WHERE NOT ${HAS_RESULT("w")} AND NOT EXISTS (
    SELECT FROM seller_exam_result r WHERE r.origin = w.origin AND r.ended_at > now() - ${REST})) AS open_exams,
  (SELECT coalesce(sum(CASE WHEN ${HAS_RESULT("w")} THEN ${EXAM_PRICE}
      WHEN e.mode = 'paid' THEN ${MOST_RUNS} * (${PAYMENTS_A_RUN} * e.amount + 1) END), 0)
    FROM seller_exam_work w JOIN seller_exam e ON e.id = w.exam) AS open,
  (SELECT coalesce(sum(s.cost), 0) FROM seller_exam_signature s JOIN seller_exam_result r ON r.exam = s.exam
    WHERE s.cost > 0 AND s.signed_at > now() - ${KEPT_FOR} AND s.valid_before > extract(epoch FROM now())
      AND NOT EXISTS (SELECT FROM seller_exam_settlement t WHERE t.exam = s.exam AND t.nonce = s.nonce)) AS kept,
  (SELECT coalesce(sum(cost), 0) FROM seller_exam_signature
    WHERE cost > 0 AND signed_at > now() - interval '24 hours') AS signed`;

/** One at a time of an origin, in the order of their sales; the origin rests between them. One that has a result owes a refund, and waits for none of this. */
const TAKE = `UPDATE seller_exam_work SET lease_token = $1, lease_until = now() + ${LEASE}, takes = takes + 1
  WHERE exam = (SELECT w.exam FROM seller_exam_work w WHERE w.due_at <= now() AND w.lease_until < now()
    AND (${HAS_RESULT("w")} OR NOT EXISTS (SELECT FROM seller_exam_work o WHERE o.origin = w.origin AND o.exam <> w.exam
      AND (o.lease_until >= now() OR (o.ordered_at, o.exam) < (w.ordered_at, w.exam)) AND NOT ${HAS_RESULT("o")})
    AND NOT EXISTS (SELECT FROM seller_exam_result r WHERE r.origin = w.origin AND r.exam <> w.exam AND r.ended_at > now() - ${REST}))
    ORDER BY w.ordered_at, w.exam LIMIT 1)
  RETURNING exam, takes`;

/** Fails to add a row if the lease is lost, if this is one run too many, or if the exam has signed all that it may. */
const NOTE = `INSERT INTO seller_exam_signature (nonce, exam, run, pay_to, value, valid_after, valid_before, cost)
  SELECT $3, w.exam, $2, $4, $5, $6, $7, $8::numeric FROM seller_exam_work w JOIN seller_exam e ON e.id = w.exam
  WHERE w.exam = $1 AND w.lease_token = $2 AND w.lease_until > now() AND e.mode = 'paid'
    AND (SELECT count(DISTINCT run) FROM seller_exam_signature WHERE exam = $1 AND run <> $2) < ${MOST_RUNS}
    AND (SELECT coalesce(sum(cost), 0) FROM seller_exam_signature WHERE exam = $1) + $8::numeric
      <= ${MOST_RUNS} * (${PAYMENTS_A_RUN} * e.amount + 1)`;

const PURCHASE = `SELECT state, final_at IS NOT NULL AS final FROM payment
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4`;
const END = `WITH ended AS (DELETE FROM seller_exam_work WHERE exam = $1 AND lease_token = $2 RETURNING exam)
  INSERT INTO seller_exam_refund (exam, tx, block_number) SELECT exam, $3, $4 FROM ended WHERE $3::bytea IS NOT NULL`;

/** Exams without a result, for all processes. */
export function createExamWork(pool: pg.Pool): ExamWork {
  return {
    async standing(origin) {
      const { rows } = await pool.query<{ is_open: boolean; rests_for: number | null }>(named(STANDING, [origin]));
      return { isOpen: rows[0]?.is_open ?? false, restsFor: rows[0]?.rests_for ?? 0 };
    },
    async commitments() {
      const { rows } = await pool.query<CommitmentColumns>(named(COMMITMENTS, []));
      const [{ open_exams, open, kept, signed } = { open_exams: 0, open: "0", kept: "0", signed: "0" }] = rows;
      return { openExams: open_exams, open: BigInt(open), kept: BigInt(kept), signed: BigInt(signed) };
    },
    take: () => take(pool),
    async keep({ order, run }) {
      const { rowCount } = await pool.query(
        named(
          `UPDATE seller_exam_work SET lease_until = now() + ${LEASE} WHERE exam = $1 AND lease_token = $2 AND lease_until > now()`,
          [order.id, run],
        ),
      );
      return rowCount === 1;
    },
    async putBack({ order, run }, seconds) {
      await pool.query(
        named(
          `UPDATE seller_exam_work SET lease_until = '-infinity', due_at = now() + $3 * interval '1 s' WHERE exam = $1 AND lease_token = $2`,
          [order.id, run, seconds],
        ),
      );
    },
    async purchaseFate({ payment: { network, asset, payer, nonce } }) {
      const key = [NETWORKS[network].chainId, bytes(asset), bytes(payer), bytes(nonce)];
      const { rows } = await pool.query<{ state: string; final: boolean }>(named(PURCHASE, key));
      const [row] = rows;
      if (row?.state === "void") return "reversed";
      return row?.state === "fulfilled" && row.final ? "final" : null;
    },
    async end({ order, run }, refund) {
      const paid = refund === null ? [null, null] : [bytes(refund.transaction), refund.block];
      await pool.query(named(END, [order.id, run, ...paid]));
    },
    async signatures(id) {
      const { rows } = await pool.query<SignatureColumns>(
        named("SELECT nonce, run, valid_after, valid_before FROM seller_exam_signature WHERE exam = $1", [id]),
      );
      return rows.map(parse);
    },
    async note({ order, run }, { nonce, to, value, validAfter, validBefore }, cost) {
      const amounts = [value, validAfter, validBefore, cost].map(String);
      const { rowCount } = await pool.query(named(NOTE, [order.id, run, bytes(nonce), bytes(to), ...amounts]));
      if (rowCount !== 1) throw new Error("the exam is another process's, or has signed all that it may");
    },
  };
}

/** The lock keeps two processes from taking two exams of one origin at once. */
const take = (pool: pg.Pool): Promise<TakenExam | null> =>
  inTransaction(pool, async (client) => {
    await client.query(named("SELECT pg_advisory_xact_lock(hashtext('seller exams'))", []));
    const run = randomUUID();
    const { rows } = await client.query<{ exam: string; takes: number }>(named(TAKE, [run]));
    const [row] = rows;
    if (row === undefined) return null;
    const found = await client.query<OrderColumns>(named("SELECT * FROM seller_exam WHERE id = $1", [row.exam]));
    const [order] = found.rows;
    if (order === undefined) throw new Error(`the exam ${row.exam} has no order`);
    return { order: parseOrder(order), run, takes: row.takes - 1 };
  });

interface CommitmentColumns {
  open_exams: number;
  open: string;
  kept: string;
  signed: string;
}

interface SignatureColumns {
  nonce: Buffer;
  run: string;
  valid_after: string;
  valid_before: string;
}

const parse = ({ nonce, run, valid_after, valid_before }: SignatureColumns): StoredSignature => ({
  nonce: hex(nonce),
  run,
  validAfter: BigInt(valid_after),
  validBefore: BigInt(valid_before),
});

import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { Authorization } from "../../packages/escrow/src/authorization.ts";
import { bytes, hex, inTransaction, lock, named } from "../platform/db/connection.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import { type OrderColumns, parseOrder } from "./exam-store.ts";
import type { ExamPaymentsEnd, WatchedPayment } from "./payment-end.ts";
import { COOLDOWN_MINUTES, EXAM_PRICE, MOST_RUNS, PAYMENTS_A_RUN } from "./products.ts";
import type { Exam, ExamOrder } from "./record.ts";

/** An admitted order for an exam of an origin, identified by the payment that buys it. */
export interface OpenOrder {
  readonly origin: string;
  readonly payer: Address;
  readonly nonce: Hex;
  /** The price of one payment to the seller. */
  readonly amount: bigint;
}

/** The database's facts that can keep an order from being opened. */
export interface OriginState {
  /** Whether another order of the origin is open. */
  readonly isOpen: boolean;
  /** Seconds until the origin can be examined again; 0 if it can be now. */
  readonly restsFor: number;
  /** The commitments of all other orders. */
  readonly commitments: Commitments;
}

/** The amounts that exams have taken from the account or can still take, in atomic units. */
export interface Commitments {
  /** The most that open orders can still cost. */
  readonly open: bigint;
  readonly openExams: number;
  /** The amount owed to buyers. */
  readonly owed: bigint;
  /** Signed by exams that have ended and not settled, although it still could be. */
  readonly kept: bigint;
  /** Signed in the last 24 hours. */
  readonly signed: bigint;
}

/** An authorization signed by this run or an earlier one. */
export interface StoredSignature {
  readonly nonce: Hex;
  readonly run: string;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
}

/** An exam that this process holds under a lease. */
export interface TakenExam {
  readonly order: ExamOrder;
  /** The lease's token. */
  readonly run: string;
  /** The number of times it was taken before. */
  readonly attempts: number;
}

const LEASE = "interval '30 s'";
const REST = `interval '${COOLDOWN_MINUTES} min'`;

/** An exam that has a result and still has work owes its buyer a refund. It does not block other orders. */
const HAS_RESULT = (exam: string) => `EXISTS (SELECT FROM seller_exam_result x WHERE x.exam = ${exam}.exam)`;

/** Longer than any authorization stays valid. */
const KEPT_FOR = "interval '1 hour'";

/** $1 is the origin. $2 and $3 are the payment of this order, which does not block itself. */
const ORIGIN_STATE = `SELECT EXISTS (SELECT FROM seller_exam_open WHERE origin = $1 AND until > now()
    AND (payer, nonce) IS DISTINCT FROM ($2::bytea, $3::bytea)) AS is_open,
  greatest(0, ceil(extract(epoch FROM (SELECT max(ended_at) FROM seller_exam_result WHERE origin = $1) + ${REST} - now())))::int
    AS rests_for`;

const WORST = `${MOST_RUNS} * (${PAYMENTS_A_RUN} * amount + 1)`;

/**
 * An open exam's authorizations count only as part of what it can still cost. $1 and $2 are a payment whose order is
 * left out.
 */
const COMMITMENTS = `SELECT o.*, (SELECT count(*) * ${EXAM_PRICE} FROM seller_exam_work w WHERE ${HAS_RESULT("w")}) AS owed,
  (SELECT coalesce(sum(s.cost), 0) FROM seller_exam_signature s JOIN seller_exam_result r ON r.exam = s.exam
    WHERE s.cost > 0 AND s.signed_at > now() - ${KEPT_FOR} AND s.valid_before > extract(epoch FROM now())
      AND NOT EXISTS (SELECT FROM seller_exam_settlement t WHERE t.exam = s.exam AND t.nonce = s.nonce)) AS kept,
  (SELECT coalesce(sum(cost), 0) FROM seller_exam_signature
    WHERE cost > 0 AND signed_at > now() - interval '24 hours') AS signed
  FROM (SELECT count(*)::int AS open_exams, coalesce(sum(${WORST}), 0) AS open FROM seller_exam_open
    WHERE until > now() AND (payer, nonce) IS DISTINCT FROM ($1::bytea, $2::bytea)) o`;

const OPEN = `INSERT INTO seller_exam_open AS o (origin, payer, nonce, amount, until) VALUES ($1, $2, $3, $4, now() + interval '1 min')
  ON CONFLICT (origin) DO UPDATE SET payer = excluded.payer, nonce = excluded.nonce,
    amount = CASE WHEN o.until = 'infinity' THEN o.amount ELSE excluded.amount END, until = greatest(o.until, excluded.until)
  WHERE (o.payer, o.nonce) = (excluded.payer, excluded.nonce) OR o.until < now()`;

/** Refunds for earlier orders come first. $1 is the exam. */
const OWED_FIRST = `SELECT count(*)::int AS earlier FROM seller_exam_work w JOIN seller_exam_work own ON own.exam = $1
  WHERE ${HAS_RESULT("w")} AND (w.ordered_at, w.exam) < (own.ordered_at, own.exam)`;

const TAKE = `UPDATE seller_exam_work SET lease_token = $1, lease_until = now() + ${LEASE}, attempts = attempts + 1
  WHERE exam = (SELECT w.exam FROM seller_exam_work w WHERE w.due_at <= now() AND w.lease_until < now()
    ORDER BY w.ordered_at, w.exam LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING exam, attempts`;

const KEEP = `UPDATE seller_exam_work SET lease_until = now() + ${LEASE} WHERE exam = $1 AND lease_token = $2 AND lease_until > now()`;
const PUT_BACK = `UPDATE seller_exam_work SET lease_until = '-infinity', due_at = now() + $3 * interval '1 s' WHERE exam = $1 AND lease_token = $2`;
const SIGNATURES = "SELECT nonce, run, valid_after, valid_before FROM seller_exam_signature WHERE exam = $1";

/** Adds no row if the lease is lost, if there are too many runs, or if the exam has signed its maximum. */
const NOTE = `INSERT INTO seller_exam_signature (nonce, exam, run, pay_to, value, valid_after, valid_before, cost)
  SELECT $3, w.exam, $2, $4, $5, $6, $7, $8::numeric FROM seller_exam_work w JOIN seller_exam e ON e.id = w.exam
  WHERE w.exam = $1 AND w.lease_token = $2 AND w.lease_until > now()
    AND (SELECT count(DISTINCT run) FROM seller_exam_signature WHERE exam = $1 AND run <> $2) < ${MOST_RUNS}
    AND (SELECT coalesce(sum(cost), 0) FROM seller_exam_signature WHERE exam = $1) + $8::numeric
      <= ${MOST_RUNS} * (${PAYMENTS_A_RUN} * e.amount + 1)`;

const PURCHASE = `SELECT state, final_at IS NOT NULL AS final FROM payment
  WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4`;
const END = `WITH ended AS (DELETE FROM seller_exam_work WHERE exam = $1 AND lease_token = $2 RETURNING exam)
  INSERT INTO seller_exam_refund (exam, tx, block_number) SELECT exam, $3, $4 FROM ended WHERE $3::bytea IS NOT NULL`;

/**
 * Stores exams without a result, shared by all processes. An origin has at most one at a time, from the order to the
 * result. Any process may take it.
 */
export const createExamWork = (pool: pg.Pool) => ({
  originState: (origin: string): Promise<OriginState> => originState(pool, { origin, payer: null, nonce: null }),
  /**
   * Opens an order for a short time, during which its payment may begin to settle. From then on, it is open until the
   * payment is void or the exam has a result. The same payment may open it again.
   * @param judge returns why it must not be opened, or null
   * @returns the result of `judge`
   */
  open: <Refusal>(order: OpenOrder, judge: (state: OriginState) => Refusal | null): Promise<Refusal | null> =>
    inTransaction(pool, async (client) => {
      // Open orders are counted by one transaction at a time.
      await lock(client, "seller exam orders");
      const refused = judge(await originState(client, order));
      const { origin, payer, nonce, amount } = order;
      if (refused !== null) return refused;
      const values = [origin, bytes(payer), bytes(nonce), amount.toString()];
      // Another order that had run out may just have been paid for.
      if ((await client.query(named(OPEN, values))).rowCount === 0)
        return judge({ ...(await originState(client, order)), isOpen: true });
      return null;
    }),
  commitments: (): Promise<Commitments> => commitments(pool, [null, null]),
  /**
   * Returns the amount that must stay in the account when this exam is paid back: the most that open orders can cost,
   * and earlier refunds.
   */
  async reservedBefore({ order }: TakenExam): Promise<bigint> {
    const [{ open, kept }, { rows }] = await Promise.all([
      commitments(pool, [null, null]),
      pool.query<{ earlier: number }>(named(OWED_FIRST, [order.id])),
    ]);
    return open + kept + EXAM_PRICE * BigInt(rows[0]?.earlier ?? 0);
  },
  take: (): Promise<TakenExam | null> => take(pool),
  /** Renews the lease. Returns false once another process has the exam. */
  async keep({ order, run }: TakenExam): Promise<boolean> {
    const { rowCount } = await pool.query(named(KEEP, [order.id, run]));
    return rowCount === 1;
  },
  /** Releases the exam, to be taken again after this many seconds. */
  async putBack({ order, run }: TakenExam, seconds: number): Promise<void> {
    await pool.query(named(PUT_BACK, [order.id, run, seconds]));
  },
  /** Returns the status of the payment that bought the exam, or null until that is final. */
  async purchaseEnd({ payment: { network, asset, payer, nonce } }: ExamOrder): Promise<ExamPaymentsEnd | null> {
    const key = [NETWORKS[network].chainId, bytes(asset), bytes(payer), bytes(nonce)];
    const { rows } = await pool.query<{ state: string; final: boolean }>(named(PURCHASE, key));
    const [row] = rows;
    if (row?.state === "void") return "reversed";
    return row?.state === "fulfilled" && row.final ? "final" : null;
  },
  /** Ends the remaining work of an exam that has a result and stores its refund, if any, in one transaction. */
  async end({ order, run }: TakenExam, refund: Exam["refund"]): Promise<void> {
    const paid = refund === null ? [null, null] : [bytes(refund.transaction), refund.block];
    await pool.query(named(END, [order.id, run, ...paid]));
  },
  /** Returns every authorization that the exam has signed. */
  async signatures(id: string): Promise<readonly StoredSignature[]> {
    const { rows } = await pool.query<SignatureColumns>(named(SIGNATURES, [id]));
    return rows.map(({ nonce, run, valid_after, valid_before }) => ({
      nonce: hex(nonce),
      run,
      validAfter: BigInt(valid_after),
      validBefore: BigInt(valid_before),
    }));
  },
  /**
   * Stores an authorization before it is signed.
   * @param cost the most that it can take from the account
   * @throws Error if the lease is lost or the exam has signed its maximum
   */
  async note({ order, run }: TakenExam, authorization: Authorization, cost: bigint): Promise<void> {
    const { nonce, to, value, validAfter, validBefore } = authorization;
    const amounts = [value, validAfter, validBefore, cost].map(String);
    const { rowCount } = await pool.query(named(NOTE, [order.id, run, bytes(nonce), bytes(to), ...amounts]));
    if (rowCount !== 1) throw new Error("another process has the exam, or it has signed its maximum");
  },
});

export type ExamWork = ReturnType<typeof createExamWork>;

type Connection = Pick<pg.Pool, "query">;

async function commitments(connection: Connection, payment: readonly (Buffer | null)[]): Promise<Commitments> {
  const { rows } = await connection.query<CommitmentColumns>(named(COMMITMENTS, payment));
  const [row = { open_exams: 0, open: "0", owed: "0", kept: "0", signed: "0" }] = rows;
  const { open_exams: openExams, open, owed, kept, signed } = row;
  return { openExams, open: BigInt(open), owed: BigInt(owed), kept: BigInt(kept), signed: BigInt(signed) };
}

interface Asking {
  readonly origin: string;
  readonly payer: Hex | null;
  readonly nonce: Hex | null;
}

async function originState(connection: Connection, { origin, payer, nonce }: Asking): Promise<OriginState> {
  const payment = [payer && bytes(payer), nonce && bytes(nonce)];
  const { rows } = await connection.query<{ is_open: boolean; rests_for: number | null }>(
    named(ORIGIN_STATE, [origin, ...payment]),
  );
  const [{ is_open, rests_for } = { is_open: false, rests_for: null }] = rows;
  return { isOpen: is_open, restsFor: rests_for ?? 0, commitments: await commitments(connection, payment) };
}

const take = (pool: pg.Pool): Promise<TakenExam | null> =>
  inTransaction(pool, async (client) => {
    const run = randomUUID();
    const { rows } = await client.query<{ exam: string; attempts: number }>(named(TAKE, [run]));
    const [row] = rows;
    if (row === undefined) return null;
    const found = await client.query<OrderColumns>(named("SELECT * FROM seller_exam WHERE id = $1", [row.exam]));
    const [order] = found.rows;
    if (order === undefined) throw new Error(`the exam ${row.exam} has no order`);
    return { order: parseOrder(order), run, attempts: row.attempts - 1 };
  });

interface CommitmentColumns {
  open_exams: number;
  open: string;
  owed: string;
  kept: string;
  signed: string;
}

interface SignatureColumns {
  nonce: Buffer;
  run: string;
  valid_after: string;
  valid_before: string;
}

const DUE = `WITH due AS (UPDATE seller_exam_watch SET due_at = now() + interval '15 s' WHERE exam IN (
    SELECT exam FROM seller_exam_watch WHERE due_at <= now() ORDER BY due_at LIMIT 50 FOR UPDATE SKIP LOCKED)
  RETURNING exam)
SELECT s.exam, s.payer, s.nonce, a.valid_before FROM due JOIN seller_exam_settlement s USING (exam)
  JOIN seller_exam_signature a ON a.nonce = s.nonce`;
const END_WATCH = `WITH ended AS (DELETE FROM seller_exam_watch WHERE exam = $1 RETURNING exam)
INSERT INTO seller_exam_reversal (exam) SELECT exam FROM ended WHERE $2 ON CONFLICT DO NOTHING`;

interface DueColumns {
  exam: string;
  payer: Buffer;
  nonce: Buffer;
  valid_before: string;
}

/** Stores published exams whose payments are not final yet, shared by all processes. */
export const createExamWatch = (pool: pg.Pool) => ({
  /** Returns the payments of exams that are due for a check, which other processes skip for a while. */
  async due(): Promise<readonly WatchedPayment[]> {
    const { rows } = await pool.query<DueColumns>(named(DUE, []));
    return rows.map(({ exam, payer, nonce, valid_before }) => ({
      exam,
      payer: hex(payer),
      nonce: hex(nonce),
      validBefore: BigInt(valid_before),
    }));
  },
  /** Records the final status of an exam's payments, once. */
  async end(exam: string, end: ExamPaymentsEnd): Promise<void> {
    await pool.query(named(END_WATCH, [exam, end === "reversed"]));
  },
});

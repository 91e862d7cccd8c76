import type pg from "pg";
import type { CheckResult } from "../../packages/seller-check/src/exam/vocabulary.ts";
import { bytes, hex, inTransaction, named, type Statement } from "../platform/db/connection.ts";
import { NETWORKS, networkOfChain } from "../platform/networks.ts";
import type { KeptEvidence } from "./published/schemas.ts";
import { type Consent, type Exam, type ExamOrder, type ExamResult, type PublishedExam, published } from "./record.ts";

export interface OrderColumns {
  id: string;
  origin: string;
  url: string;
  method: string;
  body: string | null;
  content_type: string;
  other: string | null;
  pay_to: Buffer;
  amount: string;
  consent: Consent;
  chain: number;
  asset: Buffer;
  payer: Buffer;
  nonce: Buffer;
  tx: Buffer;
  block_number: string;
  ordered_at: Date;
  again_of: string | null;
}

interface ResultColumns {
  outcome: ExamResult["outcome"] | null;
  level: ExamResult["level"];
  is_public: boolean;
  note: string | null;
  checks: string;
  evidence_sha256: Buffer;
  spent: string | null;
  settlements: KeptEvidence["settlements"] | null;
  runs: number;
  began_at: Date;
  ended_at: Date;
  valid_until: Date | null;
  reason: string | null;
  corrected_at: Date;
  granted_at: Date | null;
  again: string | null;
  reversed_at: Date | null;
  refund: Exam["refund"];
  removal: { readonly reason: string; readonly at: string } | null;
}

/** An exam with its result and its correction. */
export type ExamColumns = OrderColumns & ResultColumns;

/** Selects the free exam `n` that was taken for this one, unless a failure on our side ended it. */
export const TAKEN_AGAIN = (exam: string): string => `seller_exam n WHERE n.again_of = ${exam} AND NOT EXISTS (
    SELECT FROM seller_exam_result b WHERE b.exam = n.id AND b.is_our_fault)`;

const COLUMNS = `e.*, r.outcome, r.level, r.is_public, r.note, r.checks, r.evidence_sha256, r.spent, r.runs, r.began_at,
  r.ended_at, r.valid_until, c.reason, c.at AS corrected_at,
  (SELECT at FROM seller_exam_grant f WHERE f.exam = e.id) AS granted_at,
  (SELECT n.id FROM ${TAKEN_AGAIN("e.id")}) AS again,
  (SELECT json_build_object('transaction', '0x' || encode(f.tx, 'hex'), 'block', f.block_number)
    FROM seller_exam_refund f WHERE f.exam = e.id) AS refund,
  (SELECT json_build_object('reason', m.reason, 'at', m.at) FROM seller_exam_removal m WHERE m.exam = e.id) AS removal,
  (SELECT at FROM seller_exam_gone g WHERE g.exam = e.id) AS reversed_at, (SELECT json_agg(json_build_object(
    'nonce', '0x' || encode(s.nonce, 'hex'), 'transaction', '0x' || encode(s.tx, 'hex'), 'block', s.block_number,
    'from', '0x' || encode(s.payer, 'hex'), 'to', '0x' || encode(s.pay_to, 'hex'), 'value', s.value::text)
    ORDER BY s.block_number, s.nonce) FROM seller_exam_settlement s WHERE s.exam = e.id) AS settlements`;
/** Selects public results. */
export const ENDED = `SELECT ${COLUMNS} FROM seller_exam_result r JOIN seller_exam e ON e.id = r.exam
  LEFT JOIN seller_exam_correction c ON c.exam = r.exam WHERE r.is_public`;
const GET = `SELECT ${COLUMNS} FROM seller_exam e LEFT JOIN seller_exam_result r ON r.exam = e.id
  LEFT JOIN seller_exam_correction c ON c.exam = e.id WHERE e.id = $1`;

/** Creates the store of orders and results of exams. Rows are only ever added. */
export const createExamStore = (pool: pg.Pool) => ({
  adding: addingExam,
  /**
   * Adds the result and ends the work unless a refund is owed, in one transaction.
   * @returns whether this run still had its lease; without it, nothing is written
   */
  complete: (id: string, run: string, result: NewResult): Promise<boolean> =>
    inTransaction(pool, async (client) => {
      const { rowCount } = await client.query(named(result.owes === "refund" ? LEAVE_OPEN : END, [id, run]));
      if (rowCount !== 1) return false;
      await client.query(
        named(ADD, [
          id,
          result.outcome,
          result.level,
          result.isPublic,
          result.note,
          JSON.stringify(result.checks),
          result.evidence,
          bytes(result.evidenceSha256),
          result.spent?.toString() ?? null,
          result.runs,
          result.beganAt,
          result.endedAt,
          result.validUntil,
          result.owes !== undefined,
        ]),
      );
      await addSettlements(client, id, result.settlements);
      if (result.isPublic && result.settlements.length > 0) await client.query(named(WATCH, [id]));
      return true;
    }),
  async get(id: string): Promise<Exam | null> {
    const { rows } = await pool.query<ExamColumns>(named(GET, [id]));
    return rows[0] ? parse(rows[0]) : null;
  },
  /** Returns `KeptEvidence` as JSON, exactly as hashed; null while there is no result and after its removal. */
  async evidence(id: string): Promise<string | null> {
    const { rows } = await pool.query<{ evidence: string | null }>(
      named("SELECT evidence FROM seller_exam_result WHERE exam = $1", [id]),
    );
    return rows[0]?.evidence ?? null;
  },
});

export type ExamStore = ReturnType<typeof createExamStore>;

/** Fails with `NO_ROW` if the origin has an open order from another payment. */
const KEEP_OPEN = `WITH kept AS (
    INSERT INTO seller_exam_open AS o (origin, payer, nonce, amount, until) VALUES ($1, $2, $3, $4, 'infinity')
    ON CONFLICT (origin) DO UPDATE SET payer = excluded.payer, nonce = excluded.nonce, amount = excluded.amount, until = 'infinity'
      WHERE (o.payer, o.nonce) = (excluded.payer, excluded.nonce) OR o.until < now()
    RETURNING 1)
  SELECT require_rows(count(*), 1) FROM kept`;

/** Returns the writes that add an order and its work. Its origin cannot have another order until it has a result. */
export const addingExam = ({ payment, settlement, ...order }: ExamOrder): readonly Statement[] => [
  {
    text: KEEP_OPEN,
    values: [order.origin, bytes(payment.payer), bytes(payment.nonce), order.amount.toString()],
  },
  {
    text: `INSERT INTO seller_exam (id, origin, url, method, body, content_type, pay_to, amount, path_prefix, consent, chain, asset, payer, nonce, tx, block_number, ordered_at, again_of, other)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
    values: [
      order.id,
      order.origin,
      order.url,
      order.method,
      order.body,
      order.contentType,
      bytes(order.payTo),
      order.amount.toString(),
      order.consent.prefix,
      JSON.stringify(order.consent),
      NETWORKS[payment.network].chainId,
      bytes(payment.asset),
      bytes(payment.payer),
      bytes(payment.nonce),
      bytes(settlement.transaction),
      settlement.block,
      order.orderedAt,
      order.againOf,
      order.other,
    ],
  },
  {
    text: "INSERT INTO seller_exam_work (exam, ordered_at) VALUES ($1, $2)",
    values: [order.id, order.orderedAt],
  },
];

const END = "DELETE FROM seller_exam_work WHERE exam = $1 AND lease_token = $2";
const LEAVE_OPEN =
  "UPDATE seller_exam_work SET lease_until = '-infinity', due_at = now() WHERE exam = $1 AND lease_token = $2";
const ADD = `INSERT INTO seller_exam_result (exam, origin, pay_to, outcome, level, is_public, note, checks, evidence, evidence_sha256, spent, runs, began_at, ended_at, valid_until, is_our_fault)
  SELECT id, origin, pay_to, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14 FROM seller_exam WHERE id = $1`;

const WATCH = "INSERT INTO seller_exam_watch (exam) VALUES ($1)";
const ADD_SETTLEMENT = `INSERT INTO seller_exam_settlement (exam, nonce, tx, block_number, payer, pay_to, value)
  SELECT $1, * FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[], $7::numeric[])`;

async function addSettlements(client: pg.PoolClient, id: string, all: ExamResult["settlements"]): Promise<void> {
  if (all.length === 0) return;
  const columns = [
    all.map(({ nonce }) => bytes(nonce)),
    all.map(({ transaction }) => bytes(transaction)),
    all.map(({ block }) => block),
    all.map(({ from }) => bytes(from)),
    all.map(({ to }) => bytes(to)),
    all.map(({ value }) => value.toString()),
  ];
  await client.query(named(ADD_SETTLEMENT, [id, ...columns]));
}

function parse(row: ExamColumns): Exam {
  return {
    order: parseOrder(row),
    result: row.outcome === null ? null : parseResult(row, row.outcome),
    correction: parseCorrection(row),
    reversedAt: row.reversed_at,
    refund: row.refund,
    removal: row.removal && { reason: row.removal.reason, at: new Date(row.removal.at) },
  };
}

function parseCorrection({ reason, corrected_at: at, granted_at: grantedAt, again }: ResultColumns) {
  if (reason === null) return null;
  return { reason, at, free: grantedAt === null ? null : { grantedAt, exam: again } };
}

/** Parses an exam whose row has a public result. */
export function parsePublished(row: ExamColumns): PublishedExam {
  const exam = published(parse(row));
  if (exam === null) throw new Error(`the exam ${row.id} is not published`);
  return exam;
}

/** Parses an order's row. */
export function parseOrder(row: OrderColumns): ExamOrder {
  return {
    id: row.id,
    origin: row.origin,
    url: row.url,
    method: row.method,
    body: row.body,
    contentType: row.content_type,
    other: row.other,
    payTo: hex(row.pay_to),
    amount: BigInt(row.amount),
    consent: row.consent,
    payment: {
      network: networkOfChain(row.chain),
      asset: hex(row.asset),
      payer: hex(row.payer),
      nonce: hex(row.nonce),
    },
    settlement: { transaction: hex(row.tx), block: Number(row.block_number) },
    orderedAt: row.ordered_at,
    againOf: row.again_of,
  };
}

const parseResult = (row: ResultColumns, outcome: ExamResult["outcome"]): ExamResult => ({
  outcome,
  level: row.level,
  isPublic: row.is_public,
  note: row.note,
  checks: JSON.parse(row.checks) as readonly CheckResult[],
  evidenceSha256: row.evidence_sha256.toString("hex"),
  spent: row.spent === null ? null : BigInt(row.spent),
  settlements: (row.settlements ?? []).map(({ value, ...settled }) => ({ ...settled, value: BigInt(value) })),
  runs: row.runs,
  beganAt: row.began_at,
  endedAt: row.ended_at,
  validUntil: row.valid_until,
});

/** A result with its evidence: `KeptEvidence` as JSON text. */
export interface NewResult extends ExamResult {
  readonly evidence: string;
  /**
   * The debt to the buyer if a failure on our side ended the exam. `refund`: the work continues until the buyer has
   * been paid back. `another`: the exam was free and may be taken again. Absent in all other cases.
   */
  readonly owes?: "refund" | "another" | undefined;
}

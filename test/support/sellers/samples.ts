import { createHash, randomBytes, randomUUID } from "node:crypto";
import type pg from "pg";
import type { Address, Hex } from "viem";
import { bytes } from "../../../api/platform/db/connection.ts";
import { MAIN_NETWORK, NETWORKS } from "../../../api/platform/networks.ts";
import { createExamStore, type NewResult } from "../../../api/sellers/exam-store.ts";
import type { KeptEvidence, KeptExchange } from "../../../api/sellers/published/schemas.ts";
import { type Exam, type ExamOrder, type PublishedExam, published, VALID_DAYS } from "../../../api/sellers/record.ts";
import type { Signed } from "../payments/signing.ts";

const random32 = () => `0x${randomBytes(32).toString("hex")}` as const;

/** Evidence as it is stored. */
export const evidenceText = (
  exchanges: KeptEvidence["exchanges"],
  settlements: KeptEvidence["settlements"] = [],
): string => JSON.stringify({ exchanges, settlements });

export const SELLERS_WALLET = `0x${"ab".repeat(20)}` as const;

/** An order paid by the origin's own wallet. */
export const sampleOrder = (over: Partial<ExamOrder> = {}): ExamOrder => ({
  id: randomBytes(16).toString("hex"),
  origin: "https://seller.example",
  url: "https://seller.example/haiku",
  method: "GET",
  body: null,
  contentType: "application/json",
  other: null,
  payTo: `0x${"5e".repeat(20)}`,
  amount: 1_000n,
  consent: {
    url: "https://seller.example/.well-known/x402-exam.txt",
    text: `x402-exam v1 trust.example ${SELLERS_WALLET} / 2026-09-01T00:00:00Z`,
    prefix: "/",
    expires: "2026-09-01T00:00:00Z",
  },
  payment: {
    network: MAIN_NETWORK,
    asset: NETWORKS[MAIN_NETWORK].usdc.address,
    payer: SELLERS_WALLET,
    nonce: random32(),
  },
  settlement: { transaction: random32(), block: 12 },
  orderedAt: new Date("2026-07-01T10:00:00Z"),
  againOf: null,
  ...over,
});

/** A public result of level `full`. */
export function sampleResult(over: Partial<NewResult> = {}): NewResult {
  const { evidence = evidenceText([]) } = over;
  const endedAt = over.endedAt ?? new Date("2026-07-01T10:01:00Z");
  return {
    outcome: "complete",
    level: "full",
    isPublic: true,
    note: null,
    checks: [{ check: "terms", outcome: "pass", reason: null, findings: [] }],
    evidence,
    evidenceSha256: createHash("sha256").update(evidence).digest("hex"),
    spent: 3_000n,
    settlements: [],
    runs: 1,
    beganAt: new Date(endedAt.getTime() - 30_000),
    endedAt,
    validUntil: new Date(endedAt.getTime() + VALID_DAYS * 86_400_000),
    ...over,
  };
}

/** A published exam that is not stored. */
export function samplePublished(order: ExamOrder, over: Partial<NewResult>, after: Partial<Exam> = {}): PublishedExam {
  const { evidence: _, ...result } = sampleResult(over);
  const exam = published({ order, result, correction: null, reversedAt: null, refund: null, removal: null, ...after });
  if (exam === null) throw new Error("the sample is not published");
  return exam;
}

/** Stores an order as a sale does, and takes its work under a lease. @returns the lease */
export async function storeOrder(pool: pg.Pool, order: ExamOrder): Promise<string> {
  for (const { text, values } of createExamStore(pool).adding(order)) await pool.query(text, [...values]);
  const run = randomUUID();
  const lease = "UPDATE seller_exam_work SET lease_token = $2, lease_until = now() + interval '30 s' WHERE exam = $1";
  await pool.query(lease, [order.id, run]);
  return run;
}

/** Stores an exam that has ended. */
export async function storeExam(pool: pg.Pool, order: ExamOrder, result: NewResult): Promise<void> {
  await createExamStore(pool).complete(order.id, await storeOrder(pool, order), result);
}

/** The settlement in the seller's response. */
export const NAMED = `0x${"cd".repeat(32)}`;

/** A sale whose response is a script. */
export const EXCHANGE: KeptExchange = {
  number: 1,
  request: {
    method: "GET",
    url: "https://seller.example/haiku",
    querySha256: null,
    headers: { "payment-signature": "eyJ9" },
    bodySha256: null,
  },
  answer: {
    status: 200,
    headers: { "payment-response": Buffer.from(JSON.stringify({ transaction: NAMED })).toString("base64") },
    body: { bytes: 25, sha256: "0".repeat(64), text: "<script>alert(1)</script>", base64: null, isWhole: true },
  },
  failure: null,
};
const CHECKS: NewResult["checks"] = [
  {
    check: "purchase",
    outcome: "pass",
    reason: null,
    findings: [
      {
        code: "purchase.served",
        statement: "A payment as quoted is answered with the result (got 200)",
        holds: true,
        exchanges: [1],
      },
    ],
  },
  { check: "binding", outcome: "not_applicable", reason: "no other paid route of this origin is known", findings: [] },
];

/** Stores an exam that ended a minute ago. @returns its id */
export async function heldIn(
  pool: pg.Pool,
  order: Partial<ExamOrder> = {},
  result: Partial<NewResult> = {},
): Promise<string> {
  const stored = sampleOrder({ ...(order.origin && { url: `${order.origin}/haiku` }), ...order });
  const endedAt = result.endedAt ?? new Date(Date.now() - 60_000);
  await storeExam(
    pool,
    stored,
    sampleResult({ evidence: evidenceText([EXCHANGE]), checks: CHECKS, ...result, endedAt }),
  );
  return stored.id;
}
export const FAIL = { level: null } as const;
export const UNPUBLISHED = {
  outcome: "interrupted",
  isPublic: false,
  level: null,
  validUntil: null,
  note: "Something broke before the end.",
} as const;

interface Paid {
  readonly origin: string;
  readonly signed: Signed;
  readonly transaction: Hex;
  readonly block: number;
}

const SIGNED = `INSERT INTO seller_exam_signature (nonce, exam, run, pay_to, value, valid_after, valid_before, cost)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $5)`;

const lower = (address: Address) => address.toLowerCase() as Address;

/** Stores a PASS from a minute ago whose one payment really settled. @returns its id */
export async function holdPaid(pool: pg.Pool, { origin, signed, transaction, block }: Paid): Promise<string> {
  const { nonce, from, to, value, validAfter, validBefore } = signed.authorization;
  const order = sampleOrder({ origin, url: `${origin}/haiku`, payTo: lower(to) });
  const settlements = [{ nonce, transaction, block, from: lower(from), to: lower(to), value }];
  await storeExam(pool, order, sampleResult({ endedAt: new Date(Date.now() - 60_000), settlements, spent: value }));
  const amounts = [value, validAfter, validBefore].map(String);
  await pool.query(SIGNED, [bytes(nonce), order.id, randomUUID(), bytes(to), ...amounts]);
  return order.id;
}

const ROW = `INSERT INTO payment (chain, asset, payer, nonce, digest, signature_sha256, valid_after, valid_before, route,
  fingerprint, input, pay_to, value, version, scheme, received_at, head_block, state, tx, block_number, response, final_at, reason)
  VALUES (8453, $1, $2, $3, '\\x00', '\\x00', 0, 1, '/test/seller', '\\x00', '{}', $2, 1, 'v2', 'exact', now(), 1, $4, $3, 1, '{}', $5, $6)`;

/** Stores the journal's row of the payment that bought an exam. */
export async function storePurchase(
  owner: pg.Client,
  { payment: { asset, payer, nonce } }: ExamOrder,
  { state, isFinal }: { readonly state: "settled" | "fulfilled" | "void"; readonly isFinal: boolean },
): Promise<void> {
  const rest = [state, isFinal ? new Date() : null, state === "void" ? "reversed" : null];
  await owner.query(ROW, [bytes(asset), bytes(payer), bytes(nonce), ...rest]);
}

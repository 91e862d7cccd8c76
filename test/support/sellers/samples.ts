import { createHash, randomBytes, randomUUID } from "node:crypto";
import type pg from "pg";
import { MAIN_NETWORK, NETWORKS } from "../../../api/platform/networks.ts";
import { createExamStore, type NewResult } from "../../../api/sellers/exam-store.ts";
import { type ExamOrder, type KeptEvidence, VALID_DAYS } from "../../../api/sellers/record.ts";

const random32 = () => `0x${randomBytes(32).toString("hex")}` as const;

/** Evidence as it is kept. */
export const evidenceText = (
  exchanges: KeptEvidence["exchanges"],
  settlements: KeptEvidence["settlements"] = [],
): string => JSON.stringify({ exchanges, settlements });

export const SELLERS_WALLET = `0x${"ab".repeat(20)}` as const;

/** An order that the origin's own wallet paid for. */
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

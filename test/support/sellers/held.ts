import type pg from "pg";
import type { NewResult } from "../../../api/sellers/exam-store.ts";
import type { ExamOrder, KeptExchange } from "../../../api/sellers/record.ts";
import { evidenceText, sampleOrder, sampleResult, storeExam } from "./samples.ts";

/** The settlement that the seller's answer names. */
export const NAMED = `0x${"cd".repeat(32)}`;

/** A sale whose answer is a script. */
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
        statement: "A payment as quoted is answered with the result, and got 200",
        holds: true,
        exchanges: [1],
      },
    ],
  },
  { check: "binding", outcome: "not_applicable", reason: "no other paid route of this origin is known", findings: [] },
];

/** Stores an exam that ended a minute before now. @returns its id */
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

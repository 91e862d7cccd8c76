import { CHECK_WEIGHTS, LEVEL_MEANINGS } from "../../packages/seller-check/src/exam/level.ts";
import { remedyOf } from "../../packages/seller-check/src/exam/remedies.ts";
import { CHECK_TITLES, CHECKS, type CheckResult } from "../../packages/seller-check/src/exam/vocabulary.ts";
import { certUrl, evidenceUrl } from "../certificates/index.ts";
import { briefUsd, formatUsd } from "../platform/money.ts";
import { NETWORKS, sampleRpcUrl, TEST_NETWORK } from "../platform/networks.ts";
import { npxCommand, SELLER_CHECK } from "../platform/packages.ts";
import { consentDocument, requestDocument } from "./consent.ts";
import { examPath, REFUSALS } from "./exam-request.ts";
import {
  COOLDOWN_MINUTES,
  EXAM_PRICE,
  MOST_RUNS,
  PAYMENTS_A_RUN,
  RESULT_WITHIN_SECONDS,
  SELLER_CEILING,
} from "./products.ts";
import type { Exam, ExamOrder } from "./record.ts";

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

/** Returns a check with the remedy for each finding. */
export const checkDocument = ({ findings, ...result }: CheckResult) => ({
  ...result,
  weight: CHECK_WEIGHTS[result.check],
  findings: findings.map((finding) => ({ ...finding, remedy: remedyOf(finding) })),
});

const orderFields = ({ settlement, payment, againOf, ...order }: ExamOrder) => ({
  origin: order.origin,
  path_prefix: order.consent.prefix,
  request: requestDocument(order),
  pay_to: order.payTo,
  price: formatUsd(order.amount),
  consent: consentDocument(order.consent),
  ordered_at: iso(order.orderedAt),
  paid: { network: payment.network, payer: payment.payer, transaction: settlement.transaction },
  again_of: againOf,
});

/** Returns an exam's links: its status, its record, and its evidence, which exists once it has ended. */
const examLinks = (baseUrl: string, id: string) => ({
  exam_url: `${baseUrl}${examPath(id)}`,
  cert_url: certUrl(baseUrl, { id }),
  evidence_url: evidenceUrl(baseUrl, { id }),
});

/** Returns the response to an order. */
export const orderedDocument = (order: Pick<ExamOrder, "id" | "origin" | "payTo" | "amount">, baseUrl: string) => ({
  id: order.id,
  status: "incomplete",
  ...examLinks(baseUrl, order.id),
  result_within_seconds: RESULT_WITHIN_SECONDS,
  origin: order.origin,
  pay_to: order.payTo,
  price: formatUsd(order.amount),
  ceiling: formatUsd(SELLER_CEILING),
});

/** Returns the status of an order. After the exam has ended, only `correction` and `refund` can change. */
export function examStatus({ order, result, correction, refund }: Exam, baseUrl: string) {
  const common = { id: order.id, ...examLinks(baseUrl, order.id), ...orderFields(order) };
  if (result === null)
    return { ...common, status: "incomplete" as const, result_within_seconds: RESULT_WITHIN_SECONDS };
  return {
    ...common,
    status: result.outcome,
    certified: result.isPublic && result.level !== null,
    level: result.level,
    note: result.note,
    checks: result.checks.map(checkDocument),
    spent: result.spent === null ? null : formatUsd(result.spent),
    runs: result.runs,
    began_at: iso(result.beganAt),
    ended_at: iso(result.endedAt),
    valid_until: iso(result.validUntil),
    correction: correction === null ? null : { reason: correction.reason, at: iso(correction.at) },
    evidence_sha256: result.evidenceSha256,
    refund,
  };
}

/** Returns the terms that are public before an exam. */
export const examTerms = (baseUrl: string) => ({
  price: formatUsd(EXAM_PRICE),
  ceiling: formatUsd(SELLER_CEILING),
  result_within_seconds: RESULT_WITHIN_SECONDS,
  payments: Number(PAYMENTS_A_RUN),
  runs: MOST_RUNS,
  cooldown_minutes: COOLDOWN_MINUTES,
  checks: CHECKS.map((check) => ({ check, passes_if: CHECK_TITLES[check], weight: CHECK_WEIGHTS[check] })),
  levels: LEVEL_MEANINGS,
  refusals: REFUSALS,
  rehearsal: {
    command: `PRIVATE_KEY=0x… ${npxCommand(baseUrl, SELLER_CHECK)} <url> --rpc ${sampleRpcUrl(TEST_NETWORK)}`,
    note: `The same exam as a program, on your machine: your own account pays your own endpoint in ${NETWORKS[TEST_NETWORK].money}, or on a local chain. Nothing is published. Rehearse first, since the result of an exam is public whatever it is.`,
    hosted: {
      method: "POST" as const,
      url: `${baseUrl}/rehearsal/seller`,
      note: `The same exam from here, of a public endpoint that quotes ${NETWORKS[TEST_NETWORK].money}. Nothing is recorded.`,
    },
  },
});

/** The description for buyers, in one sentence. */
export const EXAM_DESCRIPTION = `Examines a paid x402 endpoint as a buyer that pays: is it charged once, as quoted, bound to its request, safe to retry? The seller may ask for at most ${briefUsd(SELLER_CEILING)} USDC per payment.`;

import { CHECK_TITLES, CHECKS } from "../../packages/seller-check/src/exam/vocabulary.ts";
import { certUrl, evidenceUrl } from "../certification/links.ts";
import { briefUsd, formatUsd } from "../kernel/money.ts";
import { consentText, consentToken, consentUrl } from "./consent.ts";
import { examPath, REFUSALS } from "./exam-request.ts";
import type { Prospect } from "./ports.ts";
import {
  CONSENT_DAYS,
  COOLDOWN_MINUTES,
  EXAM_PRICE,
  MOST_RUNS,
  PAYMENTS_A_RUN,
  RESULT_WITHIN_SECONDS,
  SELLER_CEILING,
} from "./products.ts";
import type { Exam, ExamOrder } from "./record.ts";

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

/** What a level says. */
const LEVELS = {
  full: "no check failed",
  safe: "terms, purchase, replay, forgery and lost_answer passed; binding, caching or offer_receipt did not",
  none: "terms, purchase, replay, forgery or lost_answer did not pass",
} as const;

const orderFields = ({ settlement, payment, againOf, ...order }: ExamOrder) => ({
  mode: order.mode,
  origin: order.origin,
  request: {
    url: order.url,
    method: order.method,
    body: order.body,
    content_type: order.contentType,
    other: order.other,
  },
  pay_to: order.payTo,
  price: formatUsd(order.amount),
  consent: order.consent,
  ordered_at: iso(order.orderedAt),
  paid: { network: payment.network, payer: payment.payer, transaction: settlement.transaction },
  again_of: againOf,
});

/** Where an exam is: its status, its record, and its evidence once it has ended. */
const examLinks = (baseUrl: string, id: string) => ({
  exam_url: `${baseUrl}${examPath(id)}`,
  cert_url: certUrl(baseUrl, { id }),
  evidence_url: evidenceUrl(baseUrl, { id }),
});

/** The answer to an order. */
export const orderedDocument = (
  order: Pick<ExamOrder, "id" | "mode" | "origin" | "payTo" | "amount">,
  baseUrl: string,
) => ({
  id: order.id,
  status: "incomplete",
  mode: order.mode,
  ...examLinks(baseUrl, order.id),
  result_within_seconds: RESULT_WITHIN_SECONDS,
  origin: order.origin,
  pay_to: order.payTo,
  price: formatUsd(order.amount),
  ceiling: formatUsd(SELLER_CEILING),
});

/** What has become of an order. Members of one that has ended never change, but for `correction` and `refund`. */
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
    checks: result.checks,
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

/** What anybody may know before an exam. */
export const examTerms = () => ({
  price: formatUsd(EXAM_PRICE),
  ceiling: formatUsd(SELLER_CEILING),
  result_within_seconds: RESULT_WITHIN_SECONDS,
  payments: Number(PAYMENTS_A_RUN),
  runs: MOST_RUNS,
  cooldown_minutes: COOLDOWN_MINUTES,
  checks: CHECKS.map((check) => ({ check, passes_if: CHECK_TITLES[check] })),
  levels: LEVELS,
  refusals: REFUSALS,
  without_consent: "Only unpaid requests are sent. The record is reached by its id, and certifies nothing.",
});

/** How to give consent to an exam of this origin that pays this wallet. */
export function consentTerms(origin: string, { payTo }: Pick<Prospect, "payTo">, host: string) {
  const to = { host, origin, payTo };
  return {
    file: { url: consentUrl(origin), line: consentToken(to) },
    signature: {
      wallet: payTo,
      text: consentText(to, "<expires>"),
      expires: `a time like 2026-12-31T00:00:00Z, within ${CONSENT_DAYS} days`,
    },
  };
}

/** In one sentence, for buyers. */
export const EXAM_DESCRIPTION = `Examines a paid x402 endpoint as a buyer that pays: is it charged once, as quoted, bound to its request, safe to retry? The seller may ask for at most ${briefUsd(SELLER_CEILING)} USDC a payment.`;

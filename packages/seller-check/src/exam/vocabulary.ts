import type { Exchange } from "./exchange.ts";
import { plain } from "./plain.ts";
import type { FindingCode } from "./remedies.ts";

/** The checks of an exam, in the order of a report. */
export const CHECKS = [
  "terms",
  "purchase",
  "replay",
  "binding",
  "forgery",
  "lost_answer",
  "caching",
  "offer_receipt",
] as const;

export type CheckName = (typeof CHECKS)[number];

/** The requirement of each check. */
export const CHECK_TITLES: Readonly<Record<CheckName, string>> = {
  terms: "The 402 is well formed, stable and true of this URL",
  purchase: "A payment is charged once, as quoted, and brings the result",
  replay: "A repeated payment is not charged again or served as a new sale",
  binding: "A payment for this request buys no other one",
  forgery: "A payment that is not as quoted is refused, and does not settle",
  lost_answer: "A buyer who lost the answer gets it with the same payment",
  caching: "A paid answer is not for shared caches, and the next unpaid request gets nothing",
  offer_receipt: "Signed offers and receipts agree with what was charged",
};

export type Outcome = "pass" | "fail" | "not_applicable";

/** One observation. */
export interface Finding {
  readonly code: FindingCode;
  /** A sentence that is true if `holds`. Any seller text in it is made plain. */
  readonly statement: string;
  readonly holds: boolean;
  /** The numbers of the exchanges that show it. */
  readonly exchanges: readonly number[];
}

/** Returns a finding that these exchanges show. */
export const shownBy =
  (...exchanges: readonly Exchange[]) =>
  (code: FindingCode, statement: string, holds: boolean): Finding => ({
    code,
    statement,
    holds,
    exchanges: exchanges.map(({ number }) => number),
  });

/** A check with its findings. If it is not applicable, it has a reason and no findings. */
export interface CheckResult {
  readonly check: CheckName;
  readonly outcome: Outcome;
  readonly reason: string | null;
  readonly findings: readonly Finding[];
}

/** Fails with the first finding that does not hold. */
export const judged = (check: CheckName, findings: readonly Finding[]): CheckResult => ({
  check,
  outcome: findings.every(({ holds }) => holds) ? "pass" : "fail",
  reason: null,
  findings: findings.map((finding) => ({ ...finding, statement: plain(finding.statement) })),
});

export const notApplicable = (check: CheckName, reason: string): CheckResult => ({
  check,
  outcome: "not_applicable",
  reason: plain(reason),
  findings: [],
});

import { plain } from "./plain.ts";

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

/** The findings of each check. */
export const FINDINGS = {
  terms: [
    "answers_402",
    "well_formed",
    "names_this_url",
    "versions_agree",
    "same_again",
    "same_later",
    "head",
    "other_method",
    "same_over_ip",
    "header_size",
  ],
  purchase: ["payable", "served", "not_charged", "charged", "response", "response_success", "response_transaction"],
  replay: ["again", "copies_served", "copies_one_result"],
  binding: ["other_body", "other_route", "other_route_charged"],
  forgery: ["refused", "not_settled", "charged_as_quoted"],
  lost_answer: ["answered", "not_charged"],
  caching: ["not_stored", "unpaid_after"],
  offer_receipt: ["offer_read", "offer_true", "receipt_read", "receipt_true", "receipt_transaction"],
} as const satisfies Record<CheckName, readonly string[]>;

/** The code of a finding: its check and a word. */
export type FindingCode = {
  [Check in CheckName]: `${Check}.${(typeof FINDINGS)[Check][number]}`;
}[CheckName];

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

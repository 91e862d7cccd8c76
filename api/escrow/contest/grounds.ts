import type { Fact } from "../../arbiter/policy/category.ts";
import type { Verdict } from "../../arbiter/policy/policy.ts";
import type { SignedDelivery } from "../delivery.ts";
import type { Decision } from "../evaluation.ts";

/** What follows from a contest, and why. */
export interface ContestRule {
  readonly id: "claim_false" | "claim_true" | "claim_unknown" | "no_ground" | "window_closed";
  readonly decision: Decision;
  readonly when: string;
}

const rule = (id: ContestRule["id"], decision: Decision, when: string): ContestRule => ({ id, decision, when });

export const NO_GROUND = rule(
  "no_ground",
  "release",
  "The claim names conditions that the offer did not have, or a delivery that the merchant did not sign.",
);
const CLAIM_FALSE = rule("claim_false", "refund", "At least one condition of the named claim is false.");
const CLAIM_TRUE = rule("claim_true", "release", "Every condition of the named claim is true.");
const CLAIM_UNKNOWN = rule(
  "claim_unknown",
  "release",
  "No condition of the named claim is false, and at least one is unknown: the evaluation of the delivery stands.",
);
export const WINDOW_CLOSED = rule(
  "window_closed",
  "release",
  "The claim was not determined when the window closed: the evaluation of the delivery stands.",
);

/** All of them, as published. */
export const CONTEST_RULES: readonly ContestRule[] = [CLAIM_FALSE, CLAIM_TRUE, CLAIM_UNKNOWN, NO_GROUND, WINDOW_CLOSED];

const BY_VERDICT: Readonly<Record<Verdict, ContestRule>> = {
  refund: CLAIM_FALSE,
  release: CLAIM_TRUE,
  escalate: CLAIM_UNKNOWN,
};

/** An answer before it is stored. */
export interface Judged {
  readonly rule: ContestRule;
  /** What was observed and how every condition was judged. */
  readonly facts: readonly Fact[];
}

export const judgedBy = (verdict: Verdict, facts: readonly Fact[]): Judged => ({ rule: BY_VERDICT[verdict], facts });

const FIELDS = ["status", "body_sha256", "content_type", "content_encoding"] as const;

/** Whether what the merchant signed for its buyer is what it forwarded. */
export function judgePayloadHash(forwarded: SignedDelivery, signed: SignedDelivery): Judged {
  const facts = FIELDS.map((field) => {
    const [expected, observed] = [signed[field], forwarded[field]];
    const isMatch = expected === observed;
    const result = isMatch ? "true" : "false";
    return { fact: "condition", condition: field, expected, observed, result, reason: isMatch ? "match" : "mismatch" };
  });
  return judgedBy(facts.every(({ result }) => result === "true") ? "release" : "refund", facts);
}

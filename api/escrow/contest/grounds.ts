import type { Fact } from "../../arbiter/policy/category.ts";
import type { Verdict } from "../../arbiter/policy/policy.ts";
import { type SignedDelivery, textHash } from "../delivery.ts";
import type { Decision } from "../evaluation.ts";
import { TIMEOUT_TEXT } from "../payment.ts";
import { type ContestClaim, hashedClaim } from "./claim.ts";

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
  "refund",
  `The claim was not determined within ${TIMEOUT_TEXT} of the hold, and nothing is released while a contest is open: the clock refunds the buyer.`,
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

type ClaimedDelivery = Extract<ContestClaim, { category: "payload-hash" }>["delivery"];

/** Whether what the merchant signed for its buyer is what it forwarded, as EIP-712 hashes both. */
export function judgePayloadHash(forwarded: SignedDelivery, claimed: ClaimedDelivery): Judged {
  const hashed = hashedClaim(claimed);
  const header = (name: "content_type" | "content_encoding") => {
    const observed = { text: forwarded[name], hash: textHash(forwarded[name]) };
    const expected = { text: claimed[name], hash: hashed[`${name}_keccak256`] };
    const isMatch = expected.hash === observed.hash;
    return expected.text === undefined
      ? { field: name, expected: expected.hash, observed: observed.hash, isMatch }
      : { field: name, expected: expected.text, observed: observed.text, isMatch };
  };
  const plain = (name: "status" | "body_sha256") => {
    const [expected, observed] = [claimed[name], forwarded[name]];
    return { field: name, expected, observed, isMatch: expected === observed };
  };
  const compared = [plain("status"), plain("body_sha256"), header("content_type"), header("content_encoding")];
  const facts = compared.map(({ field, expected, observed, isMatch }) => {
    const result = isMatch ? "true" : "false";
    return { fact: "condition", condition: field, expected, observed, result, reason: isMatch ? "match" : "mismatch" };
  });
  return judgedBy(facts.every(({ result }) => result === "true") ? "release" : "refund", facts);
}

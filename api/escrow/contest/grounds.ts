import { CONTEST_ROOM_SECONDS, LONGEST_CONTEST_SECONDS } from "../../../packages/escrow/src/contest-terms.ts";
import type { Fact, Verdict } from "../../arbiter/index.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import type { Address } from "../../platform/wallet.ts";
import { type SignedDelivery, textHash } from "../delivery.ts";
import type { Decision } from "../payment.ts";
import { TIMEOUT_TEXT } from "../payment.ts";
import { CONTEST_TYPES, type ContestClaim, contestDomain, hashedClaim } from "./claim.ts";
import { CONTEST_PATH } from "./contest-record.ts";

/** The outcome of a contest, and the rule behind it. */
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

/** All rules, as published. */
export const CONTEST_RULES: readonly ContestRule[] = [CLAIM_FALSE, CLAIM_TRUE, CLAIM_UNKNOWN, NO_GROUND, WINDOW_CLOSED];

const BY_VERDICT: Readonly<Record<Verdict, ContestRule>> = {
  refund: CLAIM_FALSE,
  release: CLAIM_TRUE,
  escalate: CLAIM_UNKNOWN,
};

/** An answer before it is stored. */
export interface Judged {
  readonly rule: ContestRule;
  /** The observations and the result of every condition. */
  readonly facts: readonly Fact[];
}

export const judgedBy = (verdict: Verdict, facts: readonly Fact[]): Judged => ({ rule: BY_VERDICT[verdict], facts });

type ClaimedDelivery = Extract<ContestClaim, { category: "payload-hash" }>["delivery"];

/**
 * Compares the delivery that the merchant signed for its buyer with the one that it forwarded, as EIP-712 hashes both.
 */
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
  const facts = compared.map(({ field, expected, observed, isMatch }) => ({
    fact: "condition" as const,
    condition: field,
    expected,
    observed,
    result: isMatch ? ("true" as const) : ("false" as const),
    reason: isMatch ? "match" : "mismatch",
  }));
  return judgedBy(facts.every(({ result }) => result === "true") ? "release" : "refund", facts);
}

const GROUNDS = [
  {
    category: "expect" as const,
    about: "The response that the merchant delivered, as forwarded.",
    needs: "The offer had conditions `expect`: expect_status, expect_sha256, min_bytes, expect_contains.",
    table: "The one for http-delivery in version 1 of the arbiter's policy.",
  },
  {
    category: "http-delivery" as const,
    about: "The arbiter's own response from the public URL in the offer. A claim does not name a URL.",
    needs: "The offer had conditions `http-delivery`: url, and any of the others. The arbiter's rules for URLs apply.",
    table: "The one for http-delivery in the arbiter's policy in force.",
  },
  {
    category: "payload-hash" as const,
    about:
      "The delivery that the merchant signed for its buyer (status, SHA-256 of the body, content type, content coding) against the one that it forwarded.",
    needs:
      "A Delivery of this payment with the merchant's signature, in claim.delivery; the middleware sends it as X-Escrow-Delivery.",
    table:
      "Each of the four is true if both deliveries have the same, and false otherwise. Signatures of a merchant that is a contract are judged at the evaluation's block.",
  },
];

/** Describes contests: their grounds, their window, and their outcomes. */
export const contestPolicy = (baseUrl: string) => ({
  url: `${baseUrl}${CONTEST_PATH}`,
  method: "POST" as const,
  body: 'payment_id; claim {category: "expect" | "http-delivery"} | {category: "payload-hash", delivery {status, body_sha256, content_type | content_type_keccak256, content_encoding | content_encoding_keccak256, signature}}; signature',
  window: {
    least_seconds: 0 as const,
    most_seconds: LONGEST_CONTEST_SECONDS,
    room_seconds: CONTEST_ROOM_SECONDS,
    text: `A merchant chooses the window in its terms; without one, a good delivery is released immediately. The window opens with the evaluation of a good delivery and closes that number of seconds later, by the chain's clock. Then the release is sent, unless a contest submitted before is still open. It is never shortened: a delivery that comes later than ${CONTEST_ROOM_SECONDS} seconds and the window before anyone may refund is not evaluated, and its hold goes back to the buyer.`,
    in_terms:
      "refundExpiry − authorizationExpiry − 86400 is the window in seconds, if it is 1 to 1200. Both are on the chain and signed by the payer. Its delivery is evaluated only with the same contest.",
  },
  grounds: GROUNDS,
  rules: CONTEST_RULES.map(({ id, decision, when }) => ({ id, decision, when })),
  once: `A payer contests a payment once, for free. The same claim again gets the same answer; another one is a 409. An answer is signed, public and final, and ends the window. While a contest has no answer, nothing is released; if it never gets one, the hold is refunded ${TIMEOUT_TEXT} after it was made.`,
  binding:
    "salt = keccak256(abi.encode(keccak256('x402AuthCaptureSaltBinding(address receiverAuthorizer,address policy,uint256 saltNonce)'), 0, policy, saltNonce)), as clients of auth-capture derive it; policy = the last 20 bytes of keccak256(abi.encode(keccak256('ContestTerms(uint32 contestSeconds,bytes32 conditionsSha256)'), seconds, SHA-256 of the conditions' canonical JSON)).",
});

/** Returns the typed data that a payer signs, under the domain of one contract. */
export const contestSigned = (network: NetworkFacts, contract: Address) => ({
  domain: contestDomain(network, contract),
  ...CONTEST_TYPES,
});

import { CONTEST_ROOM_SECONDS, LONGEST_CONTEST_SECONDS } from "../../../packages/escrow/src/contest-terms.ts";
import type { NetworkFacts } from "../../platform/networks.ts";
import type { Address } from "../../platform/wallet.ts";
import { TIMEOUT_TEXT } from "../payment.ts";
import { CONTEST_TYPES, contestDomain } from "./claim.ts";
import { CONTEST_PATH } from "./contest-record.ts";
import { CONTEST_RULES } from "./grounds.ts";

const GROUNDS = [
  {
    category: "expect" as const,
    about: "The response that the merchant delivered, as it was forwarded.",
    needs: "The offer had conditions `expect`: expect_status, expect_sha256, min_bytes, expect_contains.",
    table: "That of http-delivery in version 1 of the arbiter's policy.",
  },
  {
    category: "http-delivery" as const,
    about: "What the arbiter itself gets at the public URL that the offer names. A claim names no URL of its own.",
    needs: "The offer had conditions `http-delivery`: url, and any of the others. The arbiter's rules for URLs apply.",
    table: "That of http-delivery in the arbiter's policy in force.",
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

/** What a buyer can contest, when, and what follows. */
export const contestPolicy = (baseUrl: string) => ({
  url: `${baseUrl}${CONTEST_PATH}`,
  method: "POST" as const,
  body: 'payment_id; claim {category: "expect" | "http-delivery"} | {category: "payload-hash", delivery {status, body_sha256, content_type | content_type_keccak256, content_encoding | content_encoding_keccak256, signature}}; signature',
  window: {
    least_seconds: 0 as const,
    most_seconds: LONGEST_CONTEST_SECONDS,
    room_seconds: CONTEST_ROOM_SECONDS,
    text: `A merchant chooses the window in its terms; without one a good delivery is released at once. It opens with the evaluation of a good delivery and closes so many seconds later, by the chain's clock; then the release is sent, unless a contest that was handed in before is still open. It is never shortened: a delivery that comes later than ${CONTEST_ROOM_SECONDS} seconds and the window before anyone may refund is not evaluated, and its hold goes back to the buyer.`,
    in_terms:
      "refundExpiry − authorizationExpiry − 86400 is the window in seconds, if it is 1 to 1200. Both are on the chain and signed by the payer. Its delivery is evaluated with the same contest only.",
  },
  grounds: GROUNDS,
  rules: CONTEST_RULES.map(({ id, decision, when }) => ({ id, decision, when })),
  once: `A payer contests a payment once, for free. The same claim again gets the same answer; another one is a 409. An answer is signed, public and final, and ends the window. While a contest has no answer nothing is released; without one, the hold is refunded ${TIMEOUT_TEXT} after it was made.`,
  binding:
    "salt = keccak256(abi.encode(keccak256('x402AuthCaptureSaltBinding(address receiverAuthorizer,address policy,uint256 saltNonce)'), 0, policy, saltNonce)), as clients of auth-capture derive it; policy = the last 20 bytes of keccak256(abi.encode(keccak256('ContestTerms(uint32 contestSeconds,bytes32 conditionsSha256)'), seconds, SHA-256 of the conditions' canonical JSON)).",
});

/** What a payer signs, under the domain of one contract. */
export const contestSigned = (network: NetworkFacts, contract: Address) => ({
  domain: contestDomain(network, contract),
  ...CONTEST_TYPES,
});

import { settledFacts } from "./basic.ts";
import type { Kind } from "./kind.ts";

/** The longest that an authorization may remain valid after it arrives. */
export const HYGIENE_LIMIT_SECONDS = 900;

export const suite: Kind<"suite"> = {
  product: "suite",
  testVersion: 1,
  price: 750_000n,
  summary: "Does this agent pay with good hygiene?",
  description:
    "Full payment suite: amount, network, recipient, nonce and authorization lifetime, certified from one payment.",
  steps: [
    "POST /test/suite without a payment and read the 402 challenge.",
    `Sign an authorization that stays valid for at most ${HYGIENE_LIMIT_SECONDS} seconds and repeat the request with it.`,
    "Receive the certificate; a long-lived authorization fails the hygiene check. That FAIL is not held against the wallet, because a signature does not show who asked for the lifetime.",
  ],
  judge(sale) {
    // Measured from arrival rather than validAfter: TypeScript clients of version 2 sign validAfter = 0.
    const secondsLeft = Number(sale.validBefore - BigInt(Math.floor(sale.receivedAt.getTime() / 1000)));
    const hygiene = secondsLeft <= HYGIENE_LIMIT_SECONDS ? "pass" : "fail";
    return {
      result: hygiene,
      level: hygiene === "pass" ? "Conformant" : "Non-conformant",
      checks: {
        paid: "pass",
        exact_amount: "pass",
        network_match: "pass",
        recipient_match: "pass",
        authorization_expiry: hygiene,
      },
      detected: {
        ...settledFacts(sale),
        nonce: nonceForm(sale.payment.nonce),
        authorization_window: {
          valid_after: sale.validAfter.toString(),
          valid_before: sale.validBefore.toString(),
          seconds_left_when_received: secondsLeft,
          limit_seconds: HYGIENE_LIMIT_SECONDS,
        },
      },
    };
  },
};

/** `random`, or `counter` and `repeated` for nonces that a stranger could guess. */
function nonceForm(nonce: string): "random" | "counter" | "repeated" {
  const digits = nonce.slice(2);
  if (/^(..)\1{31}$/.test(digits)) return "repeated";
  return /^0{32}/.test(digits) || /0{32}$/.test(digits) ? "counter" : "random";
}

import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject } from "../../../packages/verifier/src/strict-json.ts";
import type { OfferBreachEvidence } from "../../../packages/verifier/src/verdict/v2/evidence.ts";
import { EFFECTIVE_DATE_V2, judgeOfferBreach } from "../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import { BASE, OFFER, RECEIPT, SEPOLIA, SHOP, seller, stranger, TX } from "./shop.ts";

/**
 * Changes every input of the decision separately. Only a change to the payment's own terms turns a non-breach into one.
 */

const DAY = Date.parse(EFFECTIVE_DATE_V2) / 1_000;
const [payee, claimant] = [seller.address, stranger.address].map((one) => one.toLowerCase()) as [string, string];
const payload = { ...OFFER, validUntil: DAY + 60 };
const ANOTHER = `0x${"0b".repeat(20)}`;

const signature = (of: "offer" | "receipt") =>
  ({ fact: "signature", of, signer: payee, key: null, reason: "valid" }) as const;
const transfer = {
  fact: "transfer",
  network: BASE,
  log_index: 7,
  asset: String(OFFER.asset).toLowerCase(),
  from: claimant,
  to: payee,
  value: "250000",
  by_authorization: true,
  to_has_code: false,
} as const;
const EXACT: OfferBreachEvidence = {
  offer: { format: "eip712", payload, signature: "0x" },
  receipt: { format: "eip712", payload: RECEIPT as JsonObject, signature: "0x" },
  settlement: { network: BASE, transaction: TX },
  claimant,
  signatures: [signature("offer"), signature("receipt")],
  transactions: [{ fact: "transaction", network: BASE, transaction: TX, outcome: "final", block: 9, time: DAY }],
  transfers: [transfer],
  decidedBy: null,
};
const DEAR: OfferBreachEvidence = { ...EXACT, transfers: [{ ...transfer, value: "250001" }] };

/** The evidence with another value at this path. */
function changed<T>(value: T, [step, ...rest]: readonly (string | number)[], to: unknown): T {
  if (step === undefined) return to as T;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>;
  copy[step] = changed(copy[step], rest, to);
  return copy as T;
}

const verdictOf = (evidence: OfferBreachEvidence) => judgeOfferBreach(evidence).verdict;

const GROUNDS: readonly (readonly [path: string, to: unknown])[] = [
  ["offer.payload.resourceUrl", `${SHOP}/ode`],
  ["offer.payload.scheme", "auth-capture"],
  ["offer.payload.network", SEPOLIA],
  ["offer.payload.network", "base"],
  ["offer.payload.asset", "USDC"],
  ["offer.payload.payTo", "seller.eth"],
  ["offer.payload.amount", "0250000"],
  ["offer.payload.amount", "1e3"],
  ["offer.payload.amount", `1${"0".repeat(78)}`],
  ["offer.payload.validUntil", DAY - 1],
  ["offer.payload.validUntil", 0],
  ["receipt", null],
  ["receipt.payload.resourceUrl", `${SHOP}/haiku?`],
  ["receipt.payload.network", SEPOLIA],
  ["receipt.payload.payer", ANOTHER],
  ["receipt.payload.payer", `eip155:8453:${claimant}`],
  ["receipt.payload.transaction", ""],
  ["receipt.payload.transaction", `${TX} `],
  ["settlement.network", SEPOLIA],
  ["settlement.transaction", `0x${"cd".repeat(32)}`],
  ["claimant", ANOTHER],
  ["claimant", ""],
  ["signatures", []],
  ["signatures.0.reason", "not_by_payee"],
  ["signatures.1.reason", "bad_signature"],
  ["signatures.1.of", "offer"],
  ["transactions", []],
  ["transactions.0.network", SEPOLIA],
  ["transactions.0.transaction", `0x${"cd".repeat(32)}`],
  ...["not_final", "not_found", "reverted", "too_many_transfers", "unavailable", "network_not_read"].map(
    (outcome) => ["transactions.0.outcome", outcome] as const,
  ),
  ["transactions.0.time", null],
  ["transactions.0.time", DAY - 1],
  ["transactions.0.time", DAY + 61],
  ["transfers", []],
  ["transfers.0.network", SEPOLIA],
  ["transfers.0.from", ANOTHER],
  ["decidedBy", "0123456789abcdef0123456789abcdef"],
];

test.each(GROUNDS)("With %s as %j, no payment is decided", (path, to) => {
  expect([verdictOf(EXACT), verdictOf(DEAR)]).toEqual(["release", "refund"]);
  for (const evidence of [EXACT, DEAR])
    expect(judgeOfferBreach(changed(evidence, path.split("."), to))).toMatchObject({
      verdict: "escalate",
      transfer: null,
    });
});

test.each<readonly [string, unknown, string]>([
  ["offer.payload.asset", ANOTHER, "refund"],
  ["offer.payload.payTo", ANOTHER, "refund"],
  ["offer.payload.amount", "249999", "refund"],
  ["offer.payload.amount", "0", "refund"],
  ["offer.payload.amount", "250001", "escalate"],
  ["offer.payload.amount", String(2n ** 256n - 1n), "escalate"],
  ["transfers.0.to", ANOTHER, "refund"],
  ["transfers.0.asset", ANOTHER, "refund"],
  ["transfers.0.value", "250001", "refund"],
  ["transfers.0.value", String(2n ** 256n - 1n), "refund"],
  ["transfers.0.value", "249999", "escalate"],
  ["transactions.0.time", DAY + 60, "release"],
  ["transactions.0.block", 10, "release"],
  ["transfers.0.log_index", 8, "release"],
  ["transfers.0.by_authorization", false, "release"],
  ["transfers.0.to_has_code", true, "release"],
  ["transfers.0.to_has_code", null, "release"],
  ["receipt.payload.issuedAt", 0, "release"],
])("A payment as offered, with %s as %j, is a %s", (path, to, verdict) => {
  expect(verdictOf(changed(EXACT, path.split("."), to))).toBe(verdict);
});

test("Other transfers in the same transaction change nothing", () => {
  const word = fc.constantFrom(ANOTHER, payee, claimant);
  const others = fc.array(
    fc.record({
      to: word,
      value: fc.bigInt({ min: 1n, max: 300_000n }).map(String),
      from: fc.constantFrom(ANOTHER, payee),
    }),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(others, fc.constantFrom(EXACT, DEAR), (more, evidence) => {
      const others = more.map((one, index) => ({ ...transfer, ...one, log_index: index }));
      const both = { ...evidence, transfers: [...others, ...evidence.transfers] };
      expect(judgeOfferBreach(both)).toEqual(judgeOfferBreach(evidence));
    }),
    { numRuns: 200 },
  );
});

test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
  "A network called %s is not one that the arbiter reads",
  (name) => {
    const strange = ["offer", "receipt"].reduce((all, of) => changed(all, [of, "payload", "network"], name), DEAR);
    const { conditions, verdict } = judgeOfferBreach(strange);
    expect(verdict).toBe("escalate");
    expect(conditions).toContainEqual(expect.objectContaining({ condition: "network", reason: "network_not_read" }));
  },
);

import fc from "fast-check";
import type { Address, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { accept, type OfferedTerms, RefusedTerms } from "../../../packages/escrow/src/acceptable.ts";
import { mismatch } from "../../../packages/escrow/src/check-payment.ts";
import { EscrowScheme } from "../../../packages/escrow/src/escrow-scheme.ts";
import { formatUsd, parseAmount } from "../../../packages/escrow/src/money.ts";
import type { PresentedPayment } from "../../../packages/escrow/src/payment-header.ts";
import { readPayment } from "../../../packages/escrow/src/schemes.ts";
import { type Offer, requirements } from "../../../packages/escrow/src/terms.ts";
import { anOffer, anyAccount, anyOffer } from "../../support/escrow/any-terms.ts";
import { encodeHeader, presentedIn } from "../../support/escrow/sale.ts";

const offers = anyOffer("commerce");
const payer: LocalAccount = privateKeyToAccount(generatePrivateKey());
const RUNS = { numRuns: 40 };

/** The buyer's payment for an offer, as the merchant reads it from the header. */
async function presented(offer: Offer, nowMs: number): Promise<PresentedPayment> {
  const accepted = requirements(offer, nowMs);
  const { x402Version, payload } = await new EscrowScheme(payer).createPaymentPayload(2, accepted);
  return presentedIn(encodeHeader({ x402Version, accepted, payload }));
}

describe("the merchant's check", () => {
  test("It accepts the buyer's payment for any offer, immediately and at any later time", async () => {
    await fc.assert(
      fc.asyncProperty(offers, fc.nat(10 ** 9), async (offer, laterMs) => {
        const now = Date.now();
        const payment = await presented(offer, now);
        expect(mismatch(payment, offer, now)).toBeNull();
        expect(mismatch(payment, offer, now + laterMs)).toBeNull();
      }),
      RUNS,
    );
  });

  test("It names the one field that differs from any offer, and the expected value", async () => {
    const now = Date.now();
    const fields = ["operator", "receiver", "token", "feeReceiver"] as const;
    await fc.assert(
      fc.asyncProperty(offers, fc.constantFrom(...fields), anyAccount, async (offer, field, other) => {
        const payment = await presented(offer, now);
        fc.pre(payment.info[field] !== other);
        const error = mismatch({ ...payment, info: { ...payment.info, [field]: other } }, offer, now);
        expect(error).toContain(`paymentInfo.${field} is ${other}, expected ${payment.info[field]}`);
      }),
      RUNS,
    );
    const numbers = ["maxAmount", "minFeeBps", "maxFeeBps"] as const;
    await fc.assert(
      fc.asyncProperty(offers, fc.constantFrom(...numbers), fc.nat(65_535), async (offer, field, number) => {
        const payment = await presented(offer, now);
        const other = field === "maxAmount" ? BigInt(number) : number;
        fc.pre(payment.info[field] !== other);
        const error = mismatch({ ...payment, info: { ...payment.info, [field]: other } }, offer, now);
        expect(error).toContain(`paymentInfo.${field} is ${other}, expected ${payment.info[field]}`);
      }),
      RUNS,
    );
  });

  const OFFER = anOffer("commerce");
  const NOW = 1_800_000_000_000;
  const at = NOW / 1000;
  /** The error for a payment with these expiries and a matching authorization, or null if it is accepted. */
  async function refusalOf(pre: number, authorization: number, refund: number): Promise<string | null> {
    const accepted = requirements(OFFER, Date.now());
    const extra = { ...accepted.extra, preApprovalExpirySeconds: Math.ceil(Date.now() / 1000) + 60 };
    const { payload } = await new EscrowScheme(payer).createPaymentPayload(2, { ...accepted, extra });
    const payment = presentedIn(encodeHeader({ x402Version: 2, accepted, payload }));
    const expiries = { preApprovalExpiry: pre, authorizationExpiry: authorization, refundExpiry: refund };
    return mismatch({ ...payment, info: { ...payment.info, ...expiries } }, OFFER, NOW);
  }
  /** The authorization still has the old hash, so its fields may be named. No expiry may be. */
  const TAKEN = /authorization\.(validBefore|nonce) is/;

  test.each([
    ["the offer's own values", 120, 86_400, 172_800, TAKEN],
    ["an authorization valid 30 s longer", 150, 86_400, 172_800, TAKEN],
    ["an authorization valid 31 s longer", 151, 86_400, 172_800, /preApprovalExpiry is .*, expected at most/],
    ["an hour less to release", 120, 120 + 82_800, 120 + 82_800, TAKEN],
    ["an hour and a second less to release", 120, 120 + 82_799, 172_800, /authorizationExpiry is .*, expected/],
    ["a day to release", 120, 120 + 86_400, 172_800, TAKEN],
    ["a day and a second to release", 120, 120 + 86_401, 172_800, /authorizationExpiry is .*, expected/],
    ["a refund end at the release end", 120, 86_400, 86_400, TAKEN],
    ["a refund end before the release end", 120, 86_400, 86_399, /refundExpiry is .*, expected/],
    ["a refund end a day later", 120, 86_400, 172_800, TAKEN],
    ["a refund end a day and a second later", 120, 86_400, 172_801, /refundExpiry is .*, expected/],
  ])("Expiries with %s are checked against the offer", async (...[_, pre, authorization, refund, wanted]) => {
    expect(await refusalOf(at + pre, at + authorization, at + refund)).toMatch(wanted);
  });

  test("Another scheme, network, or authorization is named", async () => {
    const payment = await presented(OFFER, Date.now());
    const change = (part: Partial<PresentedPayment>) => mismatch({ ...payment, ...part }, OFFER, Date.now());
    expect(change({ scheme: "exact" })).toContain("accepted.scheme is exact, expected commerce");
    expect(change({ network: "eip155:1" })).toContain("accepted.network is eip155:1, expected eip155:");
    expect(change({ scheme: undefined, network: undefined })).toBeNull();
    for (const field of ["from", "to"] as const) {
      const authorization = { ...payment.authorization, [field]: OFFER.merchant };
      expect(change({ authorization })).toContain(`authorization.${field} is ${OFFER.merchant}`);
    }
    for (const field of ["value", "validAfter", "validBefore"] as const) {
      const authorization = { ...payment.authorization, [field]: 7n };
      expect(change({ authorization })).toContain(`authorization.${field} is 7`);
    }
  });
});

test("A header may have the draft's form: collectorData as the signature, and terms without a payer", async () => {
  const headers = async (offer: Offer) => {
    const accepted = requirements(offer, Date.now());
    const { payload } = await new EscrowScheme(payer).createPaymentPayload(2, accepted);
    const header = (change: object, also: object = {}) => {
      const paymentInfo = { ...(payload.paymentInfo as object), ...change };
      return presentedIn(encodeHeader({ x402Version: 2, accepted, payload: { ...payload, paymentInfo, ...also } }));
    };
    const draft = { signature: undefined, collectorData: payload.signature };
    return { full: header({}), short: header({ payer: undefined }, draft), header };
  };
  await fc.assert(
    fc.asyncProperty(offers, anyAccount, async (offer, other) => {
      const { full, short, header } = await headers(offer);
      expect(short).toEqual(full);
      expect(() => header({ payer: null })).toThrow(/paymentInfo\.payer is not an address/);
      expect(mismatch(header({ payer: other }), offer, Date.now())).toBe(
        `The payment does not match the offer: authorization.from is ${payer.address}, expected ${other}.`,
      );
    }),
    { numRuns: 5 },
  );
});

test("A header with any bytes or any JSON is either a payment or reported as malformed", () => {
  const offer = [anOffer("commerce")];
  const check = (header: string) => {
    const read = readPayment({ "PAYMENT-SIGNATURE": header }, offer, Date.now());
    return read !== null && "malformed" in read;
  };
  fc.assert(fc.property(fc.string({ maxLength: 300 }), check));
  fc.assert(fc.property(fc.json(), (json) => check(Buffer.from(json).toString("base64"))));
  const payload = fc.record({ authorization: fc.object(), paymentInfo: fc.object(), signature: fc.string() });
  fc.assert(fc.property(payload, (value) => check(encodeHeader({ x402Version: 2, payload: value }))));
});

describe("the buyer's check", () => {
  const NOW = 1_800_000_000_000;
  const now = NOW / 1000;
  const OFFER = anOffer("commerce");
  const offered = requirements(OFFER, NOW);
  const other: Address = "0x00000000000000000000000000000000c0ffee99";
  const refusal = (change: Record<string, unknown>, limits = {}): string | null => {
    try {
      accept({ ...offered, extra: { ...offered.extra, ...change } } as OfferedTerms, limits, NOW);
      return null;
    } catch (error) {
      if (!(error instanceof RefusedTerms)) throw error;
      return error.message;
    }
  };

  test.each([
    ["operatorAddress", other],
    ["tokenCollector", other],
    ["escrowAddress", other],
    ["escrowAddress", "0x0000000000000000000000000000000000000000"],
    ["escrowAddress", undefined],
    ["minFeeBps", 99],
    ["maxFeeBps", 101],
    ["maxFeeBps", "100"],
    ["feeReceiver", undefined],
    ["settlementMethod", "charge"],
    ["name", ""],
    ["version", 2],
    ["preApprovalExpirySeconds", now],
    ["preApprovalExpirySeconds", now + 3601],
    ["authorizationExpirySeconds", now + 48 * 3600 + 1],
    ["authorizationExpirySeconds", now + 119],
    ["authorizationExpirySeconds", "1"],
    ["authorizationExpirySeconds", Number.NaN],
    ["refundExpirySeconds", now + 86_399],
    ["refundExpirySeconds", 2 ** 48],
  ])("%s of %s is refused", (field, value) => {
    expect(refusal({})).toBeNull();
    const named = field === "escrowAddress" && value === other ? "operatorAddress" : field;
    expect(refusal({ [field]: value })).toContain(`extra.${named} is `);
  });

  test.each([
    ["preApprovalExpirySeconds", now + 1],
    ["preApprovalExpirySeconds", now + 3600],
    ["authorizationExpirySeconds", now + 48 * 3600],
    ["authorizationExpirySeconds", now + 120],
    ["refundExpirySeconds", 2 ** 48 - 1],
  ])("%s of %s is still signed", (field, value) => {
    expect(refusal({ [field]: value })).toBeNull();
  });

  test("It accepts only pinned escrows and amounts up to the limit", () => {
    expect(refusal({}, { escrows: [other] })).toContain(`extra.escrowAddress is "${OFFER.escrow.address}"`);
    expect(refusal({}, { escrows: [] })).not.toBeNull();
    expect(refusal({}, { escrows: [other, OFFER.escrow.address.toLowerCase() as Address] })).toBeNull();
    expect(refusal({}, { maxAmount: 99_999n })).toContain("amount is ");
    expect(refusal({}, { maxAmount: 100_000n })).toBeNull();
  });

  test.each([
    ["scheme", "exact"],
    ["network", "solana:1"],
    ["network", "eip155:0"],
    ["amount", "0"],
    ["amount", "-1"],
    ["amount", "1.5"],
    ["amount", String(2n ** 120n)],
    ["asset", "USDC"],
    ["payTo", "0x0000000000000000000000000000000000000000"],
  ])("%s %s is refused", (field, value) => {
    expect(() => accept({ ...offered, [field]: value }, {}, NOW)).toThrow(`${field} is "${value}"`);
  });
});

test("An amount in dollars converts to atomic units and back", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 20n }), (atomic) => {
      expect(parseAmount(formatUsd(atomic))).toBe(atomic);
    }),
  );
  expect([parseAmount("0.10"), parseAmount("1"), parseAmount("0.000001")]).toEqual([100_000n, 1_000_000n, 1n]);
  expect([formatUsd(100_000n), formatUsd(1n), formatUsd(12_345_670_000n)]).toEqual(["0.10", "0.000001", "12345.67"]);
});

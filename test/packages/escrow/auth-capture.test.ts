import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import fc from "fast-check";
import { type Address, getAddress, type Hex, serializeErc6492Signature } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { mismatch, wrongFactory } from "../../../packages/escrow/src/auth-capture/check.ts";
import { parseAuthCapture } from "../../../packages/escrow/src/auth-capture/payload.ts";
import { revertCode } from "../../../packages/escrow/src/auth-capture/refusal.ts";
import { requirements } from "../../../packages/escrow/src/auth-capture/terms.ts";
import type { Offer } from "../../../packages/escrow/src/terms.ts";
import { anOffer, anyOffer } from "../../support/escrow/any-terms.ts";

const OTHER: Address = "0x9999999999999999999999999999999999999999";
const OFFER = anOffer("auth-capture");
const payer = privateKeyToAccount(generatePrivateKey());

interface Wire {
  readonly accepted: Record<string, unknown> & { readonly extra: Record<string, unknown> };
  readonly payload: Record<string, unknown> & { readonly authorization: Record<string, unknown> };
}

/** The stock client's payment for an offer, as sent in the header. */
async function signed(offer: Offer, nowMs: number): Promise<Wire> {
  const accepted = requirements(offer, nowMs);
  const { payload } = await new AuthCaptureEvmScheme(payer).createPaymentPayload(2, accepted);
  return JSON.parse(JSON.stringify({ accepted, payload }));
}

/** The code of the first check that refuses a payment, from its shape to its nonce, or null if it passes. */
function codeOf(wire: Wire, offer: Offer, nowMs: number): string | null {
  const parsed = parseAuthCapture(wire.payload);
  const error =
    "malformed" in parsed
      ? parsed.malformed
      : mismatch({ payment: { ...parsed, accepted: wire.accepted }, offer, nowMs });
  return error === null ? null : (/^invalid_auth_capture_evm_(\w+): ./.exec(error)?.[1] ?? `no code: ${error}`);
}

describe("a payment that the stock client signs", () => {
  test("It matches any offer, immediately and at any later time", async () => {
    await fc.assert(
      fc.asyncProperty(anyOffer("auth-capture"), fc.nat(10 ** 9), async (offer, laterMs) => {
        const now = Date.now();
        const wire = await signed(offer, now);
        expect(codeOf(wire, offer, now)).toBeNull();
        expect(codeOf(wire, offer, now + laterMs)).toBeNull();
      }),
      { numRuns: 40 },
    );
  });

  test("It is accepted up to an hour after the offer", async () => {
    const now = Date.now();
    const wire = await signed(OFFER, now - 3500_000);
    expect(codeOf(wire, OFFER, now)).toBeNull();
    expect(codeOf(await signed(OFFER, now - 3700_000), OFFER, now)).toBe("deadline_ordering");
  });
});

type Change = readonly [code: string, change: (wire: Wire, nowSeconds: number) => Wire];

const accepted = (change: Record<string, unknown>) => (wire: Wire) => ({
  ...wire,
  accepted: { ...wire.accepted, ...change },
});
const extra =
  (change: Record<string, unknown>) =>
  (wire: Wire): Wire => ({ ...wire, accepted: { ...wire.accepted, extra: { ...wire.accepted.extra, ...change } } });
const payload = (change: Record<string, unknown>) => (wire: Wire) => ({
  ...wire,
  payload: { ...wire.payload, ...change },
});
const authorization =
  (change: Record<string, unknown>) =>
  (wire: Wire): Wire => ({
    ...wire,
    payload: { ...wire.payload, authorization: { ...wire.payload.authorization, ...change } },
  });
const permit2 = (wire: Wire): Wire => {
  const { authorization: _, ...others } = wire.payload;
  return { ...wire, payload: { ...others, permit2Authorization: {} } as never };
};
const TEXTS = ["name", "version", "operatorType", "paymentFlow", "captureMode", "assetTransferMethod"];
const ADDRESSES = ["authCaptureEscrow", "captureAuthorizer", "feeRecipient"];

/** One false value per field, in the order in which the checks find them. */
const CHANGES: readonly Change[] = [
  ["payload_format", payload({ salt: undefined })],
  ["payload_format", payload({ salt: `0x${"11".repeat(33)}` })],
  ["payload_format", payload({ saltNonce: `0x${"11".repeat(32)}` })],
  ["payload_format", payload({ signature: "0x" })],
  ["payload_format", payload({ authorization: undefined })],
  ["payload_format", authorization({ from: "payer" })],
  ["payload_format", authorization({ value: "-1" })],
  ["payload_format", authorization({ nonce: "0x11" })],
  ["scheme", accepted({ scheme: "exact" })],
  ["scheme", accepted({ scheme: undefined })],
  ["network_mismatch", accepted({ network: "eip155:1" })],
  ["network_mismatch", accepted({ network: undefined })],
  ["extra", accepted({ extra: undefined })],
  ["extra", accepted({ extra: [] })],
  ...TEXTS.map((field): Change => ["extra", extra({ [field]: "other" })]),
  ...TEXTS.map((field): Change => ["extra", extra({ [field]: undefined })]),
  ...ADDRESSES.map((field): Change => ["extra", extra({ [field]: OTHER })]),
  ["extra", extra({ minFeeBps: 0 })],
  ["extra", extra({ maxFeeBps: 101 })],
  ["extra", extra({ minFeeBps: "100" })],
  ["extra", extra({ receiverAuthorizer: OTHER })],
  ["extra", extra({ policy: OTHER })],
  ["extra", extra({ captureDeadline: "1800086520" })],
  ["extra", (wire, now) => extra({ captureDeadline: now + 90_000, refundDeadline: now + 90_000 })(wire)],
  ["extra", (wire, now) => extra({ refundDeadline: now + 90_000 })(wire)],
  ["payload_method_mismatch", permit2],
  ["deadline_ordering", (wire, now) => extra({ refundDeadline: now + 50_000 })(wire)],
  ["deadline_ordering", (wire, now) => extra({ captureDeadline: now + 80_000, refundDeadline: now + 80_000 })(wire)],
  ["deadline_ordering", (wire, now) => authorization({ validBefore: String(now + 4000) })(wire)],
  ["deadline_ordering", authorization({ validBefore: String(2n ** 256n - 1n) })],
  ["authorization_not_yet_valid", (wire, now) => authorization({ validAfter: String(now + 60) })(wire)],
  ["token_collector_mismatch", authorization({ to: OTHER })],
  ["amount_mismatch", authorization({ value: "99999" })],
  ["amount_mismatch", accepted({ amount: "99999" })],
  ["nonce_mismatch", accepted({ payTo: OTHER })],
  ["nonce_mismatch", accepted({ asset: OTHER })],
  ["nonce_mismatch", authorization({ from: OTHER, nonce: `0x${"11".repeat(32)}` })],
  ["nonce_mismatch", payload({ salt: `0x${"11".repeat(32)}` })],
  ["nonce_mismatch", (wire, now) => extra({ captureDeadline: now + 86_400, refundDeadline: now + 86_400 })(wire)],
  ["nonce_mismatch", (wire, now) => authorization({ validBefore: String(now + 60) })(wire)],
  ["signature", authorization({ validAfter: "1" })],
];

describe("a false field", () => {
  const NOW_MS = Date.now();
  const NOW = Math.floor(NOW_MS / 1000);
  const wire = signed(OFFER, NOW_MS);

  test("Every false field is refused with that field's code", async () => {
    const honest = await wire;
    for (const [index, [code, change]] of CHANGES.entries())
      expect(`${index} ${codeOf(change(honest, NOW), OFFER, NOW_MS)}`).toBe(`${index} ${code}`);
  });

  test("A signature for another merchant, amount, fee, or token is refused by its nonce", async () => {
    const lies = [{ merchant: OTHER }, { price: 1n }, { escrow: { ...OFFER.escrow, address: OTHER } }] as const;
    for (const lie of lies) {
      const lied = await signed({ ...OFFER, ...lie }, NOW_MS);
      const claims = { ...lied, accepted: (await wire).accepted };
      const honestValue = authorization({ value: String(OFFER.price) })(claims);
      expect(codeOf(honestValue, OFFER, NOW_MS)).toBe("nonce_mismatch");
    }
  });

  test("Two false fields are reported by the code of the one that is checked first", async () => {
    const honest = await wire;
    const order = [...new Set(CHANGES.map(([code]) => code))];
    const index = fc.nat(CHANGES.length - 1);
    await fc.assert(
      fc.property(index, index, (one, other) => {
        const [first, second] = [CHANGES[one], CHANGES[other]] as [Change, Change];
        // Skip pairs that change the same field, and pairs where the second undoes the first.
        const both = second[1](first[1](honest, NOW), NOW);
        const alone = [first, second].map(([, change]) => JSON.stringify(change(honest, NOW)));
        fc.pre(!alone.includes(JSON.stringify(both)));
        const reported = codeOf(both, OFFER, NOW_MS) ?? "none";
        const earliest = Math.min(order.indexOf(first[0]), order.indexOf(second[0]));
        expect(order.indexOf(reported)).toBeLessThanOrEqual(earliest);
        expect(order).toContain(reported);
      }),
      { numRuns: 300 },
    );
  });

  test("An address that differs only in letter case is accepted", async () => {
    const lower = extra({ captureAuthorizer: OFFER.escrow.address.toLowerCase() })(await wire);
    expect(codeOf(accepted({ payTo: OFFER.merchant.toLowerCase() })(lower), OFFER, NOW_MS)).toBeNull();
  });
});

describe("a wallet without code", () => {
  const FACTORY: Address = "0x00000000000000000000000000000000c0ffee05";
  const signature: Hex = `0x${"12".repeat(65)}`;
  const wrapped = serializeErc6492Signature({ address: FACTORY, data: "0x1234", signature });
  const MAGIC = "6492".repeat(16);

  test("It is accepted only with a known factory, and by default no factory is known", () => {
    expect(wrongFactory(wrapped, [])).toMatch(/^invalid_auth_capture_evm_erc6492_factory_not_allowed: .*none/);
    expect(wrongFactory(wrapped, [OTHER])).toMatch(/erc6492_factory_not_allowed: .*c0ffee05.*accepted: 0x9999/i);
    expect(wrongFactory(wrapped, [OTHER, getAddress(FACTORY)])).toBeNull();
  });

  test("A wrapped signature without a factory is refused, and other signatures need none", () => {
    expect(wrongFactory(`0x1234${MAGIC}`, [FACTORY])).toMatch(/^invalid_auth_capture_evm_signature: /);
    expect(wrongFactory(signature, [])).toBeNull();
  });
});

test.each([
  ["Error", "ERC20: transfer amount exceeds balance", "insufficient_balance"],
  ["PaymentAlreadyCollected", "PaymentAlreadyCollected(0x12)", "payment_already_collected"],
  ["AfterPreApprovalExpiry", "AfterPreApprovalExpiry(2, 1)", "authorization_expired"],
  ["InvalidExpiries", "InvalidExpiries(1, 2, 3)", "deadline_ordering"],
  ["Error", "FiatTokenV2: invalid signature", "simulation_failed"],
])("A hold that reverts with %s (%s) is reported as %s", (name, text, code) => {
  expect(revertCode({ name, text })).toBe(code);
});

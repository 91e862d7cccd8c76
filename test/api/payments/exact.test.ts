import fc from "fast-check";
import { type Hex, hashTypedData, serializeErc6492Signature, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import type { ClaimedTerms, PresentedPayment } from "../../../api/payments/scheme.ts";
import { EXACT } from "../../../api/payments/schemes/exact.ts";
import {
  accountSignature,
  isAccountSignature,
  settledWith,
  tooLong,
  windowOpen,
  windowProblem,
} from "../../../api/payments/signature.ts";
import { authorizationDigest, authorizationTypedData } from "../../../api/platform/chain/authorization.ts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import type { Terms } from "../../../api/platform/http/route.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { altered, highS, signPayment } from "../../support/payments/signing.ts";

describe("Signed terms", () => {
  const NOW = 1_900_000_000n;
  const USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
  const TERMS: Terms = {
    network: "eip155:8453",
    payTo: "0x00000000000000000000000000000000c0ffee01",
    value: 250_000n,
  };
  const SIGNED: PresentedPayment["authorization"] = {
    from: "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
    to: TERMS.payTo,
    value: 250_000n,
    validAfter: 0n,
    validBefore: NOW + 120n,
    nonce: `0x${"ab".repeat(32)}`,
  };
  const errorOf = (
    change: Partial<PresentedPayment["authorization"]>,
    claimed: ClaimedTerms = {},
    version: PresentedPayment["version"] = "v2",
  ) => {
    const authorization = { ...SIGNED, ...change };
    const signed = { scheme: "exact", signature: "0x", details: null, paymentId: null } as const;
    return (
      EXACT.misfit({ ...signed, version, authorization, claimed }, TERMS, new Date())?.error ??
      tooLong(authorization, NOW) ??
      windowProblem(authorization, { now: NOW, head: NOW - 3n })?.error ??
      null
    );
  };

  describe("Accepted terms", () => {
    test.each<[string, Partial<PresentedPayment["authorization"]>]>([
      ["the exact terms", {}],
      ["20 seconds left", { validBefore: NOW + 20n }],
      ["valid since the second before the chain's head", { validAfter: NOW - 4n }],
      ["valid for 24 hours", { validBefore: NOW + 86_400n }],
    ])("A route accepts an authorization with these terms: %s", (_, change) => expect(errorOf(change)).toBeNull());
  });

  describe("Refused terms", () => {
    const elsewhere = "0x00000000000000000000000000000000c0ffee02";
    test.each<[string, Partial<PresentedPayment["authorization"]>, RegExp]>([
      ["another receiver", { to: elsewhere }, /pays 0x0+c0ffee02; it must pay 0x0+c0ffee01/],
      ["the receiving address itself", { from: TERMS.payTo }, /receiving address itself/],
      ["one unit too little", { value: 249_999n }, /249999 .*0\.249999 USDC.*exactly 250000 \(0\.25 USDC\)/],
      ["one unit too much", { value: 250_001n }, /250001.*exactly 250000/],
      ["valid only after the second of the chain's head", { validAfter: NOW - 3n }, /not valid until/],
      ["valid only after this second", { validAfter: NOW }, /not valid until/],
      ["valid in the far future", { validAfter: 2n ** 256n - 1n }, /not valid until unix time/],
      ["expired this second", { validBefore: NOW }, /expired at 2030-/],
      ["19 seconds left", { validBefore: NOW + 19n }, /at least 20 seconds/],
      ["valid for a second more than 24 hours", { validBefore: NOW + 86_401n }, /until 2030-\S+; .* at most 24 hours/],
      ["valid forever", { validBefore: 2n ** 256n - 1n }, /until unix time \d{78}; .* at most 24 hours/],
    ])("A route refuses an authorization with these terms and gives the reason: %s", (_, change, why) =>
      expect(errorOf(change)).toMatch(why),
    );
  });

  describe("Terms that a client claims in addition to its signature", () => {
    test.each<[string, ClaimedTerms, PresentedPayment["version"]]>([
      ["all terms, as published", { scheme: "exact", network: "eip155:8453", asset: USDC, amount: "250000" }, "v2"],
      [
        "addresses in different letter case",
        { asset: USDC.toLowerCase(), payTo: "0x00000000000000000000000000000000C0FFEE01" },
        "v2",
      ],
      ["the short name in version 1", { scheme: "exact", network: "base" }, "v1"],
      ["no terms", {}, "v2"],
    ])("A claim is accepted with %s", (_, claimed, version) => expect(errorOf({}, claimed, version)).toBeNull());

    test.each<[string, ClaimedTerms, PresentedPayment["version"], RegExp]>([
      ["another scheme", { scheme: "upto" }, "v2", /scheme upto/],
      ["another network", { network: "eip155:84532" }, "v2", /network eip155:84532; this route accepts eip155:8453/],
      ["the long name in version 1", { network: "eip155:8453" }, "v1", /this route accepts base\./],
      ["another asset", { asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e" }, "v2", /asset 0x036/],
      ["another amount", { amount: "10000" }, "v2", /claims 10000 atomic units, but the authorization is for 250000/],
      ["another receiver", { payTo: "0x00000000000000000000000000000000c0ffee02" }, "v2", /claims to pay/],
    ])("A claim is refused with %s", (...[, claimed, version, why]) =>
      expect(errorOf({}, claimed, version)).toMatch(why),
    );

    test("The route's price decides, not the price that the client claims", () =>
      expect(errorOf({ value: 10_000n }, { amount: "10000" })).toMatch(/exactly 250000/));
  });

  test.each([
    [20n, true],
    [19n, false],
  ])("An authorization with %i seconds left may be submitted: %s", (left, open) =>
    expect(windowOpen(NOW + left, NOW)).toBe(open),
  );
});

describe("The signature", async () => {
  const account = devAccount(3);
  const payer = account.address.toLowerCase() as Hex;
  const BASE = NETWORKS["eip155:8453"];
  const SEPOLIA = NETWORKS["eip155:84532"];
  const signed = await signPayment(account);
  const authorization: Authorization = { ...signed.authorization, from: payer };
  const digest = authorizationDigest(authorization, BASE);
  const { signature } = signed;
  const parity = signature.endsWith("1b") ? 0 : 1;
  const withV = (v: string): Hex => `${signature.slice(0, 130)}${v}` as Hex;

  /** The 64-byte form, with the parity in the highest bit of s. */
  const compact = (yParity: number): Hex =>
    `${signature.slice(0, 66)}${(BigInt(`0x${signature.slice(66, 130)}`) | (BigInt(yParity) << 255n)).toString(16).padStart(64, "0")}` as Hex;
  const wrapped = (inner: Hex): Hex =>
    serializeErc6492Signature({ address: zeroAddress, data: "0x1234", signature: inner });

  describe("Signatures that Circle's contract accepts from an account without code", () => {
    test("The account's signature over this digest is accepted", async () =>
      expect(isAccountSignature(payer, digest, signature)).toBe(true));

    test("A signature that ends in 27 or 28 is accepted", async () => {
      const seen = new Set<string>();
      for (let i = 0; i < 24 && seen.size < 2; i++) {
        const other = await signPayment(account);
        const itsDigest = authorizationDigest({ ...other.authorization, from: payer }, BASE);
        expect(isAccountSignature(payer, itsDigest, other.signature)).toBe(true);
        seen.add(other.signature.slice(130));
      }
      expect([...seen].sort()).toEqual(["1b", "1c"]);
    });
  });

  describe("Other signature encodings", () => {
    const other = privateKeyToAccount(generatePrivateKey()).address;
    test.each<[string, Hex]>([
      ["v as 0 or 1", withV(`0${parity}`)],
      ["64 bytes (ERC-2098)", compact(parity)],
      ["a wrapping that would deploy a wallet (ERC-6492)", wrapped(signature)],
      ["a wrapping of 64 bytes", wrapped(compact(parity))],
    ])("Another encoding is normalized to the same signature: %s", (_, form) => {
      expect(accountSignature(payer, digest, form)).toBe(signature);
      expect(settledWith({ payer, digest, signature: form }, {})).toBe(signature);
      expect(accountSignature(other, digest, form)).toBeNull();
    });

    test("A contract receives its signature unchanged, except that the ERC-6492 wrapping is removed", () => {
      const settled = (form: Hex, deploys?: (one: Hex) => boolean) =>
        settledWith({ payer: other, digest, signature: form }, { ...(deploys && { deploys }) });
      for (const form of [withV("00"), compact(parity), "0x01", `${signature}${"ab".repeat(500)}`] as const) {
        expect(settled(form)).toBe(form);
        expect(settled(wrapped(form))).toBe(form);
        expect(settled(wrapped(form), () => true)).toBe(wrapped(form));
      }
      // A contract would make the inner wrapping's call.
      expect(settled(wrapped(wrapped("0x01")))).toBe(wrapped(wrapped("0x01")));
    });
  });

  describe("Signatures that Circle's contract rejects", () => {
    test.each<[string, Hex]>([
      ["the opposite v", withV(parity === 0 ? "1c" : "1b")],
      ["v as 29", withV("1d")],
      ["the copy with s in the upper half of the order", highS(signature)],
      ["64 bytes of a signature with v as 28, as in ERC-2098 with v as 27", compact(parity === 0 ? 1 : 0)],
      ["63 bytes", signature.slice(0, 128) as Hex],
      ["a wrapping in a wrapping (ERC-6492)", wrapped(wrapped(signature))],
      ["a wrapping without a call (ERC-6492)", `${signature}${"6492".repeat(16)}`],
      ["66 bytes", `${signature}00` as Hex],
      ["no bytes", "0x"],
      ["zeros", `0x${"00".repeat(64)}1b`],
      ["r of zero", `0x${"00".repeat(32)}${signature.slice(66)}` as Hex],
      ["r beyond the field", `0x${"ff".repeat(32)}${signature.slice(66)}` as Hex],
    ])("A malformed signature is rejected: %s", async (_, other) =>
      expect(isAccountSignature(payer, digest, other)).toBe(false),
    );

    test("A signature with any one byte altered is rejected", () =>
      fc.assert(
        fc.asyncProperty(fc.integer({ min: 0, max: 64 }), async (byte) => {
          expect(isAccountSignature(payer, digest, altered(signature, byte))).toBe(false);
        }),
        { numRuns: 30 },
      ));

    test("Another account's signature is rejected", async () => {
      const other = await signPayment(devAccount(4), signed.authorization);
      expect(isAccountSignature(payer, digest, other.signature)).toBe(false);
    });

    test("The payer's signature for another network is rejected", async () => {
      const other = await signPayment(account, signed.authorization, SEPOLIA);
      expect(isAccountSignature(payer, digest, other.signature)).toBe(false);
      expect(isAccountSignature(payer, authorizationDigest(authorization, SEPOLIA), other.signature)).toBe(true);
    });

    test.each<[string, Partial<Authorization>]>([
      ["amount", { value: 1n }],
      ["receiver", { to: payer }],
      ["start", { validAfter: 1n }],
      ["end", { validBefore: 1n }],
      ["nonce", { nonce: `0x${"00".repeat(32)}` }],
    ])("The payer's signature over a different %s is rejected", async (_, change) =>
      expect(isAccountSignature(payer, authorizationDigest({ ...authorization, ...change }, BASE), signature)).toBe(
        false,
      ),
    );
  });

  test("The digest of any authorization equals the hash of its typed data on every network", () => {
    const hex = (bytes: number) => fc.bigInt({ min: 0n, max: 256n ** BigInt(bytes) - 1n }).map(asHex(bytes));
    const uint = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
    const times = { validAfter: uint, validBefore: uint };
    const any = fc.record({ from: hex(20), to: hex(20), value: uint, ...times, nonce: hex(32) });
    fc.assert(
      fc.property(any, fc.constantFrom(BASE, SEPOLIA), (one, network) => {
        expect(authorizationDigest(one, network)).toBe(hashTypedData(authorizationTypedData(one, network)));
      }),
      { numRuns: 50 },
    );
  });

  const asHex =
    (bytes: number) =>
    (value: bigint): Hex =>
      `0x${value.toString(16).padStart(2 * bytes, "0")}`;
});

import { describe, expect, test } from "vitest";
import type { ClaimedTerms, PresentedPayment } from "../../../../api/payments/scheme.ts";
import { mismatch } from "../../../../api/payments/schemes/exact.ts";
import { tooLong, windowOpen, windowProblem } from "../../../../api/payments/signature.ts";
import type { Terms } from "../../../../api/platform/http/route.ts";

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
  return (
    mismatch({ version, authorization, claimed }, TERMS) ??
    tooLong(authorization, NOW) ??
    windowProblem(authorization, { now: NOW, head: NOW - 3n })?.error ??
    null
  );
};

describe("signed terms that a route takes", () => {
  test.each<[string, Partial<PresentedPayment["authorization"]>]>([
    ["the exact terms", {}],
    ["20 seconds left", { validBefore: NOW + 20n }],
    ["valid since the second before the chain's head", { validAfter: NOW - 4n }],
    ["valid for 24 hours", { validBefore: NOW + 86_400n }],
    ["valid for an hour", { validBefore: NOW + 3_600n }],
  ])("%s", (_, change) => expect(errorOf(change)).toBeNull());
});

describe("signed terms that a route refuses, and why", () => {
  const elsewhere = "0x00000000000000000000000000000000c0ffee02";
  test.each<[string, Partial<PresentedPayment["authorization"]>, RegExp]>([
    ["another receiver", { to: elsewhere }, /pays 0x0+c0ffee02; it must pay 0x0+c0ffee01/],
    ["the receiving address itself", { from: TERMS.payTo }, /receiving address itself/],
    ["one unit too little", { value: 249_999n }, /249999 .*0\.249999 USDC.*exactly 250000 \(0\.25 USDC\)/],
    ["one unit too much", { value: 250_001n }, /250001.*exactly 250000/],
    ["nothing", { value: 0n }, /for 0 atomic units/],
    ["valid only after the second of the chain's head", { validAfter: NOW - 3n }, /not valid until/],
    ["valid only after this second", { validAfter: NOW }, /not valid until/],
    ["valid in the far future", { validAfter: 2n ** 256n - 1n }, /not valid until unix time/],
    ["expired this second", { validBefore: NOW }, /expired at 2030-/],
    ["expired long ago", { validBefore: 0n }, /expired at 1970-/],
    ["one second left", { validBefore: NOW + 1n }, /at least 20 seconds/],
    ["19 seconds left", { validBefore: NOW + 19n }, /at least 20 seconds/],
    ["valid for a second more than 24 hours", { validBefore: NOW + 86_401n }, /until 2030-\S+; .* at most 24 hours/],
    ["valid forever", { validBefore: 2n ** 256n - 1n }, /until unix time \d{78}; .* at most 24 hours/],
  ])("%s", (_, change, why) => expect(errorOf(change)).toMatch(why));
});

describe("terms that a client claims beside what it signed", () => {
  test.each<[string, ClaimedTerms, PresentedPayment["version"]]>([
    ["all of them, as published", { scheme: "exact", network: "eip155:8453", asset: USDC, amount: "250000" }, "v2"],
    ["addresses in any case", { asset: USDC.toLowerCase(), payTo: "0x00000000000000000000000000000000C0FFEE01" }, "v2"],
    ["the short name in version 1", { scheme: "exact", network: "base" }, "v1"],
    ["nothing", {}, "v2"],
  ])("%s agree", (_, claimed, version) => expect(errorOf({}, claimed, version)).toBeNull());

  test.each<[string, ClaimedTerms, PresentedPayment["version"], RegExp]>([
    ["another scheme", { scheme: "upto" }, "v2", /scheme upto/],
    ["another network", { network: "eip155:84532" }, "v2", /network eip155:84532; this route accepts eip155:8453/],
    ["the short name in version 2", { network: "base" }, "v2", /network base/],
    ["the long name in version 1", { network: "eip155:8453" }, "v1", /this route accepts base\./],
    ["another asset", { asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e" }, "v2", /asset 0x036/],
    ["another amount", { amount: "10000" }, "v2", /claims 10000 atomic units, but the authorization is for 250000/],
    ["another receiver", { payTo: "0x00000000000000000000000000000000c0ffee02" }, "v2", /claims to pay/],
  ])("%s contradicts it", (...[, claimed, version, why]) => expect(errorOf({}, claimed, version)).toMatch(why));

  test("the price of a route counts, not the price that a client claims for it", () =>
    expect(errorOf({ value: 10_000n }, { amount: "10000" })).toMatch(/exactly 250000/));
});

test.each([
  [20n, true],
  [19n, false],
  [0n, false],
  [-1n, false],
])("an authorization with %i seconds left may be submitted: %s", (left, open) =>
  expect(windowOpen(NOW + left, NOW)).toBe(open),
);

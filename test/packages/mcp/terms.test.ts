import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBudget, OverBudget } from "../../../packages/mcp/src/budget.ts";
import { formatUsd, parseUsd } from "../../../packages/mcp/src/money.ts";
import { DEFAULT_BUDGET_USD, DEFAULT_LOG_ENTRIES, parseSettings } from "../../../packages/mcp/src/settings.ts";
import { checkTerms, type PaymentRequired, RefusedTerms } from "../../../packages/mcp/src/terms.ts";

const PAYEE = "0x00000000000000000000000000000000c0ffee01";
const OTHER = `0x${"0b".repeat(20)}`;
const KEY = `0x${"42".repeat(32)}`;
const ALLOWED = { published: 250_000n, maxPrice: 250_000n, payTo: PAYEE } as const;
const OFFER = {
  scheme: "exact",
  network: "eip155:8453",
  amount: "250000",
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  payTo: PAYEE,
  maxTimeoutSeconds: 120,
  extra: { name: "USD Coin", version: "2" },
};
const required = (...accepts: readonly object[]): PaymentRequired =>
  ({ x402Version: 2, resource: { url: "https://trust.example/test/basic" }, accepts }) as unknown as PaymentRequired;

describe("terms", () => {
  test("as they are published are accepted, cheaper ones too, whatever else is offered", () => {
    expect(checkTerms(required(OFFER), ALLOWED)).toEqual(OFFER);
    expect(checkTerms(required({ ...OFFER, amount: "1" }), ALLOWED)).toMatchObject({ amount: "1" });
    expect(checkTerms(required({ ...OFFER, network: "eip155:1" }, OFFER), ALLOWED)).toEqual(OFFER);
    expect(
      checkTerms(required({ ...OFFER, extra: { ...OFFER.extra, assetTransferMethod: "eip3009" } }), ALLOWED),
    ).toBeDefined();
  });

  test.each([
    ["no terms", null, /no terms/],
    ["another scheme", { scheme: "upto" }, /scheme is "upto"/],
    ["another network", { network: "eip155:84532" }, /network is "eip155:84532", expected eip155:8453/],
    ["another asset", { asset: OTHER }, /asset is/],
    ["another payee", { payTo: OTHER }, /payTo is/],
    ["a payee that is not an address", { payTo: "alice.eth" }, /payTo is/],
    ["a unit more than published", { amount: "250001" }, /at most the published 250000 \(0\.25 USD\)/],
    ["nothing", { amount: "0" }, /amount/],
    ["less than nothing", { amount: "-250000" }, /amount/],
    ["hex", { amount: "0x1" }, /amount/],
    [
      "another way to transfer",
      { extra: { ...OFFER.extra, assetTransferMethod: "permit2" } },
      /assetTransferMethod is "permit2"/,
    ],
    ["another token's name", { extra: { ...OFFER.extra, name: "USDC" } }, /extra\.name/],
    ["another version", { extra: { ...OFFER.extra, version: "1" } }, /extra\.version/],
    ["no token's name", { extra: undefined }, /extra\.name is missing/],
    ["301 seconds", { maxTimeoutSeconds: 301 }, /maxTimeoutSeconds/],
    ["seconds as text", { maxTimeoutSeconds: "300" }, /maxTimeoutSeconds is "300", expected a number/],
    ["half a second", { maxTimeoutSeconds: 0.5 }, /maxTimeoutSeconds is 0\.5, expected 1 to 300/],
    ["seconds without an end", { maxTimeoutSeconds: Number.NaN }, /maxTimeoutSeconds/],
    ["an amount that is a number", { amount: 250_000 }, /amount is 250000, expected a string/],
    ["a payee in a list", { payTo: [PAYEE] }, /payTo is \["0x/],
    ["no time at all", { maxTimeoutSeconds: undefined }, /maxTimeoutSeconds is missing/],
    ["no time", { maxTimeoutSeconds: 0 }, /maxTimeoutSeconds/],
    ["less than no time", { maxTimeoutSeconds: -300 }, /maxTimeoutSeconds is -300, expected 1 to 300/],
    ["millennia", { maxTimeoutSeconds: 1e300 }, /maxTimeoutSeconds is 1e\+300, expected 1 to 300/],
  ])("%s are refused, and the error says why and that nothing was signed", (_name, change, message) => {
    const offered = change === null ? required() : required({ ...OFFER, ...change });
    expect(() => checkTerms(offered, ALLOWED)).toThrow(RefusedTerms);
    expect(() => checkTerms(offered, ALLOWED)).toThrow(message);
    expect(() => checkTerms(offered, ALLOWED)).toThrow(/Nothing was signed/);
  });

  test.each([[null], ["none"], [[null]]])("that are %j instead of a list of offers are none", (accepts) => {
    expect(() => checkTerms({ ...required(), accepts } as unknown as PaymentRequired, ALLOWED)).toThrow(
      /no terms to pay/,
    );
  });

  test("max_price holds at its boundary", () => {
    const published = 300_000n;
    expect(checkTerms(required(OFFER), { ...ALLOWED, published, maxPrice: 250_000n })).toBeDefined();
    expect(() => checkTerms(required(OFFER), { ...ALLOWED, published, maxPrice: 249_999n })).toThrow(
      /max_price 0\.249999 USD/,
    );
  });
});

describe("the budget of a session", () => {
  test("is spent to its last unit, and never beyond, in whatever order", () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt(1n, 900_000n), { maxLength: 12 }), (amounts) => {
        const budget = createBudget(1_000_000n);
        let taken = 0n;
        for (const amount of amounts) {
          if (taken + amount > 1_000_000n) expect(() => budget.take(amount)).toThrow(OverBudget);
          else {
            budget.take(amount);
            taken += amount;
          }
          expect(budget.spent()).toBe(taken);
        }
      }),
    );
  });
});

test("amounts are read and written exactly", () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 14n), (atomic) => {
      expect(parseUsd(formatUsd(atomic))).toBe(atomic);
    }),
  );
  expect([250_000n, 1_000_000n, 1n, 100_500n].map(formatUsd)).toEqual(["0.25", "1.00", "0.000001", "0.1005"]);
  expect(["", "-1", "0.1234567", "1e3", ".5", "1."].map(parseUsd)).toEqual([null, null, null, null, null, null]);
});

describe("the environment", () => {
  test("has a default budget; a key and a payee are taken as they are", () => {
    expect(parseSettings({ BASE_URL: "https://trust.example/" })).toEqual({
      baseUrl: "https://trust.example",
      payerKey: null,
      payTo: null,
      nodeUrl: null,
      logPolicy: null,
      logEntries: Number(DEFAULT_LOG_ENTRIES),
      budget: parseUsd(DEFAULT_BUDGET_USD),
    });
    const env = {
      BASE_URL: "http://localhost:4020",
      PAYER_PRIVATE_KEY: KEY,
      PAY_TO_ADDRESS: PAYEE,
      BASE_RPC_URL: "https://base.example/key",
      SESSION_BUDGET_USD: "0.5",
    };
    const read = { payerKey: KEY, payTo: PAYEE, nodeUrl: "https://base.example/key", budget: 500_000n };
    expect(parseSettings(env)).toMatchObject(read);
  });

  test.each([
    [{}, /BASE_URL/],
    [{ BASE_URL: "trust.example" }, /BASE_URL/],
    [{ BASE_URL: "http://trust.example" }, /http only for localhost/],
    [{ BASE_URL: "https://trust.example/api" }, /BASE_URL/],
    [{ BASE_URL: "https://me:secret@trust.example" }, /BASE_URL/],
    [{ BASE_URL: "https://trust.example", PAYER_PRIVATE_KEY: KEY.slice(0, 40) }, /PAYER_PRIVATE_KEY/],
    [{ BASE_URL: "https://trust.example", PAY_TO_ADDRESS: "0x12" }, /PAY_TO_ADDRESS/],
    [{ BASE_URL: "https://trust.example", BASE_RPC_URL: "base.example/4242" }, /BASE_RPC_URL/],
    [{ BASE_URL: "https://trust.example", SESSION_BUDGET_USD: "much" }, /SESSION_BUDGET_USD/],
  ])("%j is refused by name, without repeating a key", (env, message) => {
    const settings = parseSettings(env);
    expect(settings).toEqual({ problem: expect.stringMatching(message) });
    expect(JSON.stringify(settings)).not.toContain("4242");
  });
});

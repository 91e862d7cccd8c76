import { decodePaymentSignatureHeader } from "@x402/core/http";
import fc from "fast-check";
import type { Address, LocalAccount } from "viem";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { BEHAVIORAL_PRODUCTS, SINGLE_PRODUCTS } from "../../../api/certificates/products.ts";
import { createBudget, formatUsd, OverBudget, parseUsd } from "../../../packages/mcp/src/money.ts";
import { ServiceError } from "../../../packages/mcp/src/service.ts";
import { DEFAULT_BUDGET_USD, DEFAULT_LOG_ENTRIES, parseSettings } from "../../../packages/mcp/src/settings.ts";
import { checkTerms, type PaymentRequired, RefusedTerms } from "../../../packages/mcp/src/terms.ts";
import { PAID_TOOLS } from "../../../packages/mcp/src/tool-server.ts";
import { startArbiterScene } from "../../support/arbiter/scene.ts";
import { boardSeeder } from "../../support/board.ts";
import { forFile } from "../../support/for-file.ts";
import { between, call, connectLocal } from "../../support/packages/mcp.ts";
import { nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";

const CLAIM = { category: "payload-hash", conditions: { payload_text: "as agreed", expected_sha256: "0".repeat(64) } };
const usd = (product: keyof typeof PRICES, more = 0n) => formatUsd(PRICES[product] + more);
const TERMS = {
  amount_usd: usd("verdict"),
  amount_atomic: String(PRICES.verdict),
  asset: "USDC",
  network: "eip155:8453",
};
const STRANGER = `0x${"ab".repeat(20)}`;

let payer: LocalAccount;
const scene = await forFile(startArbiterScene());

beforeEach(async () => {
  payer = await newPayer(scene.chain);
});

const honest = () => between(scene.service.url, (answer) => answer);

test("There are twelve tools, and the paid ones state the service's prices and that they spend", async () => {
  const { tools } = await (await connectLocal({ service: honest() })).listTools();
  expect(tools).toHaveLength(12);
  expect(JSON.stringify(tools).length).toBeLessThan(12_000);
  const paid = tools.slice(8);
  expect(paid.map(({ name, description }) => [name, description?.match(/\/\S+ [\d.]+ USDC/g)])).toEqual([
    ["score_wallet", [`/score ${usd("score")} USDC`]],
    ["score_batch", [`/score/batch ${usd("scores")} USDC`]],
    ["certify", [`/test/basic ${usd("basic")} USDC`, `/test/suite ${usd("suite")} USDC`]],
    [
      "arbiter_verify",
      [`/arbiter/verify ${usd("verdict")} USDC`, `/arbiter/verify/scored ${usd("scoredVerdict")} USDC`],
    ],
  ]);
  for (const { annotations } of paid)
    expect(annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: false });
});

test("The prices that the tools know are the ones that the service publishes", async () => {
  const { resources } = (await send(`${scene.service.url}/.well-known/x402`)).body as {
    resources: { resource: string; amount: string }[];
  };
  const published = new Map(resources.map(({ resource, amount }) => [new URL(resource).pathname, amount]));
  for (const { path, price } of PAID_TOOLS.flatMap(({ sells }) => sells))
    expect(published.get(path)).toBe(String(price));
});

test("Without the service the tools are still listed with their published prices", async () => {
  const client = await connectLocal({
    service: { baseUrl: "http://localhost:9", send: () => Promise.reject(new ServiceError("away")) },
  });
  const { tools } = await client.listTools();
  expect(tools.at(-1)?.description).toContain(
    `/arbiter/verify ${usd("verdict")} USDC, as published; the service did not`,
  );
  expect(await call(client, "list_tests")).toMatchObject({ isError: true, text: expect.stringMatching(/away/) });
});

test.each(SINGLE_PRODUCTS)("The certify tool pays once for %s and returns the payer's certificate", async (kind) => {
  const service = honest();
  const { isError, text, structured } = await call(await connectLocal({ service, payer }), "certify", { test: kind });
  expect({ isError, text }).toMatchObject({ isError: false });
  const amount = usd(kind);
  const wallet = payer.address.toLowerCase();
  expect(structured).toMatchObject({
    status: "paid",
    price: { amount_usd: amount, asset: "USDC", network: "eip155:8453" },
    budget: { limit_usd: "2.00", spent_usd: amount },
    settlement: { network: "eip155:8453", payer: payer.address },
    certificate: { product: kind, verdict: "pass", conformance: true, wallet },
    wallet_standing: "verified",
  });
  const [settled, ...more] = await settlements(scene.chain, payer.address);
  expect(more).toEqual([]);
  expect(structured.settlement).toMatchObject({ transaction: settled?.transaction });
  expect(service.payments).toHaveLength(1);
});

test("The certify tool reports that a wallet with a FAIL is not verified by the certificate that it buys", async () => {
  const seeder = boardSeeder(scene.service.database);
  onTestFinished(() => seeder.stop());
  const wallet = payer.address.toLowerCase() as Address;
  await seeder.add({ wallet, product: "scam", result: "fail", issuedAt: new Date() });
  const tools = await connectLocal({ service: honest(), payer });
  expect((await call(tools, "certify", { test: "basic" })).structured).toMatchObject({
    status: "paid",
    certificate: { verdict: "pass" },
    wallet_standing: "not verified: FAIL in scam",
  });
  expect((await call(tools, "check_credential", { wallet })).structured).toMatchObject({
    says: "valid, not verified: FAIL in scam",
    about: `wallet ${wallet}`,
  });
});

test("The certify tool returns the certificate even if the wallet's record cannot be read", async () => {
  const service = between(scene.service.url, (answer, { path }) =>
    path.startsWith("/verify") ? { ...answer, status: 503, text: "{}" } : answer,
  );
  expect((await call(await connectLocal({ service, payer }), "certify", { test: "basic" })).structured).toMatchObject({
    certificate: { verdict: "pass" },
    wallet_standing: expect.stringMatching(/^not known: \/verify\?wallet=0x\w+ did not answer/),
  });
});

test.each(BEHAVIORAL_PRODUCTS)("The certify tool does not run %s, explains why, and signs nothing", async (kind) => {
  const service = honest();
  const { isError, structured } = await call(await connectLocal({ service, payer }), "certify", { test: kind });
  expect(isError).toBe(false);
  expect(structured).toMatchObject({
    status: "not_played",
    what_to_do: expect.stringMatching(/what the agent itself signs/),
  });
  expect(service.payments).toEqual([]);
});

test("arbiter_verify returns a verdict whose signature and conditions it has checked", async () => {
  for (const claim of scene.claims) {
    const { category, verdict, conditions } = claim;
    const client = await connectLocal({ service: honest(), payer });
    const answer = await call(client, "arbiter_verify", { category, conditions, deal_ref: "deal 7" });
    expect(answer.structured, answer.text).toMatchObject({ status: "paid", verdict: { verdict, deal_ref: "deal 7" } });
  }
  expect(await settlements(scene.chain, payer.address)).toHaveLength(scene.claims.length);
});

test("Without a key a paid tool returns its terms and what to do", async () => {
  const service = honest();
  const { isError, structured } = await call(await connectLocal({ service }), "arbiter_verify", CLAIM);
  expect(isError).toBe(false);
  expect(structured).toMatchObject({
    status: "payment_required",
    price: { ...TERMS, pay_to: expect.stringMatching(new RegExp(PAY_TO, "i")) },
    what_to_do: expect.stringMatching(/PAYER_PRIVATE_KEY/),
  });
  expect(service.payments).toEqual([]);
});

describe("money", () => {
  test.each([
    ["text", usd("basic", -1n), usd("basic")],
    ["a number", Number(usd("basic", -1n)), Number(usd("basic"))],
  ])(
    "With max_price as %s, a call with one unit less than the price is refused, and one with the price buys",
    async (_form, less, price) => {
      const service = honest();
      const client = await connectLocal({ service, payer });
      const refused = await call(client, "certify", { test: "basic", max_price: less });
      expect(refused).toMatchObject({
        isError: true,
        text: expect.stringMatching(new RegExp(`max_price ${usd("basic", -1n)} USDC.*Nothing was signed`)),
      });
      expect(service.payments).toEqual([]);
      expect(await call(client, "certify", { test: "basic", max_price: price })).toMatchObject({ isError: false });
    },
  );

  test("The budget limits consecutive and simultaneous calls", async () => {
    const service = honest();
    const client = await connectLocal({ service, payer, limit: 2n * PRICES.verdict + 100_000n });
    const deals = ["deal 1", "deal 2", "deal 3"].map((deal_ref) => ({ ...CLAIM, deal_ref }));
    const answers = await Promise.all(deals.map((deal) => call(client, "arbiter_verify", deal)));
    expect(answers.filter(({ isError }) => isError)).toMatchObject([
      { text: expect.stringMatching(/0\.10 of the session's \S+ USDC budget is left\. Nothing was signed/) },
    ]);
    expect(await call(client, "arbiter_verify", CLAIM)).toMatchObject({ isError: true });
    expect(service.payments).toHaveLength(2);
    expect(await settlements(scene.chain, payer.address)).toHaveLength(2);
  });

  test("For a wallet without money, the service's reason is returned and nothing is charged", async () => {
    const poor = await newPayer(scene.chain, 0n);
    const { isError, text } = await call(await connectLocal({ service: honest(), payer: poor }), "certify", {
      test: "basic",
    });
    expect({ isError, text }).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^\/test\/basic: the service answered 402/),
    });
    await nothingCharged(scene.chain, poor);
  });

  test("A response that is lost is requested again with the same payment, which is charged once", async () => {
    let lost = 0;
    const service = between(scene.service.url, (answer, { headers }) => {
      if (headers?.["PAYMENT-SIGNATURE"] !== undefined && lost++ === 0) throw new ServiceError("connection reset");
      return answer;
    });
    const { structured } = await call(await connectLocal({ service, payer }), "certify", { test: "basic" });
    expect(structured).toMatchObject({ status: "paid", certificate: { verdict: "pass" } });
    expect([service.payments.length, new Set(service.payments).size]).toEqual([2, 1]);
    expect(await settlements(scene.chain, payer.address)).toHaveLength(1);
  });

  test("Only the offer is signed, and no extension of the terms is returned", async () => {
    const service = honest();
    await call(await connectLocal({ service, payer }), "certify", { test: "basic" });
    const { extensions, accepted } = decodePaymentSignatureHeader(service.payments[0] ?? "");
    expect(extensions).toBeUndefined();
    expect(accepted).toMatchObject({ amount: String(PRICES.basic), network: "eip155:8453" });
  });
});

test.each(["1e3", 0.1 + 0.2, 0.0000001, true])(
  "A max_price of %j is refused before anything is signed, and the error names the expected format",
  async (max_price) => {
    const service = honest();
    const client = await connectLocal({ service, payer });
    expect(await call(client, "score_wallet", { wallet: STRANGER, max_price })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/max_price: expected US dollars with at most six decimals, like "0\.25" or 0\.25/),
    });
    expect(service.payments).toEqual([]);
  },
);

test.each([
  ["score_wallet", { wallet: "0x12" }, /0x and 40 hex digits/],
  ["score_batch", { wallets: [] }, /wallets/],
  ["score_batch", { wallets: Array.from({ length: 26 }, (_, n) => `0x${String(n).padStart(40, "a")}`) }, /25/],
  ["score_batch", { wallets: [STRANGER, STRANGER.toUpperCase().replace("X", "x")] }, /different wallets/],
  ["certify", { test: "everything" }, /test/],
  ["arbiter_verify", { category: "taste", conditions: {} }, /category/],
  ["arbiter_verify", { ...CLAIM, category: "ci-status" }, /conditions\.repo.*Nothing was signed/],
  ["arbiter_verify", { ...CLAIM, conditions: { expected_sha256: "0".repeat(64) } }, /exactly one of payload_text/],
  ["arbiter_verify", { ...CLAIM, conditions: { url: "https://x.example", screenshot: "y" } }, /conditions/],
])("%s with %j is refused before anything is signed, and the error explains why", async (name, input, message) => {
  const service = honest();
  const client = await connectLocal({ service, payer });
  const outcome = await call(client, name, input).catch((error: Error) => ({ isError: true, text: error.message }));
  expect(outcome).toMatchObject({ isError: true, text: expect.stringMatching(message) });
  expect(service.payments).toEqual([]);
});

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
  test("The published terms and cheaper ones are accepted among other offers", () => {
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
    ["a unit more than published", { amount: "250001" }, /at most the published 250000 \(0\.25 USDC\)/],
    ["a zero amount", { amount: "0" }, /amount/],
    ["a hex amount", { amount: "0x1" }, /amount/],
    [
      "another transfer method",
      { extra: { ...OFFER.extra, assetTransferMethod: "permit2" } },
      /assetTransferMethod is "permit2"/,
    ],
    ["another token's name", { extra: { ...OFFER.extra, name: "USDC" } }, /extra\.name/],
    ["another token version", { extra: { ...OFFER.extra, version: "1" } }, /extra\.version/],
    ["no token's name", { extra: undefined }, /extra\.name is missing/],
    ["301 seconds", { maxTimeoutSeconds: 301 }, /maxTimeoutSeconds/],
    ["seconds as text", { maxTimeoutSeconds: "300" }, /maxTimeoutSeconds is "300", expected a number/],
    ["a fraction of a second", { maxTimeoutSeconds: 0.5 }, /maxTimeoutSeconds is 0\.5, expected 1 to 300/],
    ["an amount that is a number", { amount: 250_000 }, /amount is 250000, expected a string/],
    ["a payee in a list", { payTo: [PAYEE] }, /payTo is \["0x/],
    ["zero seconds", { maxTimeoutSeconds: 0 }, /maxTimeoutSeconds/],
  ])("Terms with %s are refused, and the error explains why and that nothing was signed", (_name, change, message) => {
    const offered = change === null ? required() : required({ ...OFFER, ...change });
    expect(() => checkTerms(offered, ALLOWED)).toThrow(RefusedTerms);
    expect(() => checkTerms(offered, ALLOWED)).toThrow(message);
    expect(() => checkTerms(offered, ALLOWED)).toThrow(/Nothing was signed/);
  });

  test.each([[null], ["none"], [[null]]])("Terms with %j instead of a list of offers count as none", (accepts) => {
    expect(() => checkTerms({ ...required(), accepts } as unknown as PaymentRequired, ALLOWED)).toThrow(
      /no terms to pay/,
    );
  });
});

describe("the budget of a session", () => {
  test("It can be spent to its last unit and never exceeded, in any order", () => {
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

test("Amounts are parsed and formatted exactly", () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 14n), (atomic) => {
      expect(parseUsd(formatUsd(atomic))).toBe(atomic);
    }),
  );
  expect([250_000n, 1_000_000n, 1n, 100_500n].map(formatUsd)).toEqual(["0.25", "1.00", "0.000001", "0.1005"]);
  expect(["", "-1", "0.1234567", "1e3", ".5", "1."].map(parseUsd)).toEqual([null, null, null, null, null, null]);
});

describe("the environment", () => {
  test("The budget has a default, and a key and a payee are read unchanged", () => {
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
    [{ BASE_URL: "trust.example" }, /BASE_URL/],
    [{ BASE_URL: "http://trust.example" }, /http only for localhost/],
    [{ BASE_URL: "https://trust.example/api" }, /BASE_URL/],
    [{ BASE_URL: "https://me:secret@trust.example" }, /BASE_URL/],
    [{ BASE_URL: "https://trust.example", PAYER_PRIVATE_KEY: KEY.slice(0, 40) }, /PAYER_PRIVATE_KEY/],
    [{ BASE_URL: "https://trust.example", PAY_TO_ADDRESS: "0x12" }, /PAY_TO_ADDRESS/],
    [{ BASE_URL: "https://trust.example", BASE_RPC_URL: "base.example/4242" }, /BASE_RPC_URL/],
    [{ BASE_URL: "https://trust.example", SESSION_BUDGET_USD: "much" }, /SESSION_BUDGET_USD/],
  ])("The settings %j are refused by name, and the error repeats no key", (env, message) => {
    const settings = parseSettings(env);
    expect(settings).toEqual({ problem: expect.stringMatching(message) });
    expect(JSON.stringify(settings)).not.toContain("4242");
  });
});

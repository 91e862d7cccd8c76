import type { LocalAccount } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import type { SingleProduct } from "../../../api/certificates/products.ts";
import { formatUsd } from "../../../api/platform/money.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const DAY_MS = 86_400_000;
const HOUR_SECONDS = 3_600n;

/** The service's clock, or null for the real time. */
let clock: Date | null = null;
const now = () => clock ?? new Date();
const nowSeconds = () => BigInt(Math.floor(now().getTime() / 1000));

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, now }));
afterEach(() => {
  clock = null;
});

interface Run {
  readonly product?: "basic" | "suite";
  readonly validForSeconds?: bigint;
  readonly headersOf?: (signed: Signed) => Record<string, string>;
}

/** Buys one test run and returns the payer's response. */
async function run(payer: LocalAccount, { product = "basic", validForSeconds = 120n, headersOf = v2 }: Run = {}) {
  const value = PRICES[product];
  const signed = await signPayment(payer, { value, validBefore: nowSeconds() + validForSeconds });
  const answer = await post(`${service.url}/test/${product}`, headersOf(signed));
  expect(answer.status).toBe(200);
  return { ...answer, signed };
}

const at = (issued: unknown, afterMs: number) => new Date(new Date(String(issued)).getTime() + afterMs);
const verify = (wallet: string): Promise<Answer> => send(`${service.url}/verify?wallet=${wallet}`);
const asJson = { headers: { accept: "application/json" } };

/** Every field of the specification's certificate response and its settlement. */
const certificateOf = (product: SingleProduct, verdict: "pass" | "fail") => ({
  id: expect.stringMatching(/^[0-9a-f]{16}$/),
  conformance: verdict === "pass",
  product,
  test_version: 1,
  verdict,
  level: verdict === "pass" ? "Conformant" : "Non-conformant",
  checks: expect.objectContaining({ paid: "pass" }),
  detected: expect.objectContaining({
    exact_amount: true,
    recipient_match: true,
    network_match: true,
    network: "base",
    asset: "USDC",
    protocol_version: expect.stringMatching(/^v[12]$/),
  }),
  wallet: expect.stringMatching(/^0x[0-9a-f]{40}$/),
  issued_at: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/),
  valid_until: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/),
  settlement: {
    transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    network: "eip155:8453",
    network_key: "base",
    block: expect.any(Number),
    explorer_url: expect.stringMatching(/^https:\/\/basescan\.org\/tx\/0x[0-9a-f]{64}$/),
    amount: String(PRICES[product]),
    amount_usd: formatUsd(PRICES[product]),
    pay_to: PAY_TO,
  },
  cert_url: expect.stringContaining(`${service.url}/cert/`),
  badge_url: expect.stringMatching(/\/badge\/[0-9a-f]{16}\.svg$/),
  badge_markdown: expect.stringMatching(/^\[!\[.+\]\(http.+\.svg\)\]\(http.+\)$/),
});

describe("certificate response", () => {
  test("A basic run's response has every field of the specification, and its settlement matches the chain", async () => {
    const payer = await newPayer(chain);
    const { body, headers, signed } = await run(payer);
    expect(body).toEqual(certificateOf("basic", "pass"));
    expect(body.checks).toEqual({ paid: "pass" });
    const [settlement] = await settlements(chain, payer.address);
    const receipt = await chain.client.getTransactionReceipt({ hash: settlement?.transaction ?? "0x" });
    expect(body.settlement).toMatchObject({ transaction: settlement?.transaction, block: Number(receipt.blockNumber) });
    expect(body.wallet).toBe(payer.address.toLowerCase());
    expect(at(body.issued_at, 30 * DAY_MS)).toEqual(at(body.valid_until, 0));
    expect(headers.get("content-location")).toBe(`/cert/${body.id}`);
    await chargedOnce(chain, signed);
  });

  test("A suite run whose authorization ends in two minutes is a PASS with the facts about nonce and window", async () => {
    const { body, signed } = await run(await newPayer(chain), { product: "suite" });
    expect(body).toEqual(certificateOf("suite", "pass"));
    expect(body.checks).toMatchObject({ authorization_expiry: "pass" });
    expect(body.detected).toMatchObject({
      nonce: "random",
      authorization_window: {
        valid_after: "0",
        valid_before: String(signed.authorization.validBefore),
        seconds_left_when_received: expect.any(Number),
        limit_seconds: 900,
      },
    });
  });

  test("A suite run whose authorization ends in an hour is a FAIL: charged, public, and not counted", async () => {
    const { body, signed } = await run(await newPayer(chain), { product: "suite", validForSeconds: HOUR_SECONDS });
    expect(body).toEqual(certificateOf("suite", "fail"));
    expect(body.checks).toMatchObject({ paid: "pass", authorization_expiry: "fail" });
    await chargedOnce(chain, signed);
    const record = await send(String(body.cert_url), asJson);
    expect(record.body).toMatchObject({ id: body.id, verdict: "fail", fresh: true, expired: false, counts: false });
    const page = await send(String(body.cert_url), { headers: { accept: "text/html" } });
    expect(page.text).toContain("does not count against the wallet");
    expect(page.text).not.toContain("counts against the wallet until");
    expect((await send(String(body.badge_url))).text).toContain("not counted · tested");
  });
});

describe("30 days of a certificate", () => {
  test.each([
    ["a millisecond before 30 days", 30 * DAY_MS - 1, true, 29],
    ["at 30 days", 30 * DAY_MS, false, 30],
  ])("%s (%i ms) a certificate is fresh: %s", async (...[_, afterMs, fresh, ageDays]) => {
    const payer = await newPayer(chain);
    const { body } = await run(payer);
    clock = at(body.issued_at, afterMs);
    const record = await send(String(body.cert_url), asJson);
    expect(record.body).toMatchObject({ id: body.id, verdict: "pass", fresh, expired: !fresh });
    const { body: verification } = await verify(payer.address);
    expect(verification).toMatchObject({ tested: true, verified: fresh });
    expect(verification.certs).toMatchObject([
      { id: body.id, result: "pass", fresh, expired: !fresh, age_days: ageDays },
    ]);
    expect(verification.capabilities).toMatchObject({
      can_pay: { tested: true, result: "pass", fresh, expired: !fresh },
    });
    const badge = await send(String(body.badge_url));
    expect(badge.text).toContain(`${fresh ? "valid until" : "expired"} ${String(body.valid_until).slice(0, 10)}`);
  });
});

describe("GET /verify", () => {
  test("An untested wallet is reported as never tested", async () => {
    const wallet = "0x00000000000000000000000000000000000000aa";
    const { status, body } = await verify(wallet);
    const untested = { tested: false, result: null, fresh: false, expired: false, valid_until: null, cert_url: null };
    expect(status).toBe(200);
    expect(body).toMatchObject({
      service: expect.any(String),
      wallet,
      tested: false,
      verified: false,
      verified_means: expect.any(String),
      capabilities: {
        can_pay: untested,
        scam_resistance: untested,
        recipient_awareness: untested,
        full_suite: untested,
      },
      reasons: [{ code: "never_tested", text: expect.any(String), product: null, cert_url: null }],
      certs: [],
      freshness_policy: { valid_for_days: 30, note: expect.any(String) },
      how_to_test: `${service.url}/inspect`,
      activity: { window_days: 90, note: expect.any(String) },
      paid_score: { note: expect.any(String), method: "POST", url: expect.stringContaining(wallet) },
      checked_at: expect.stringMatching(/Z$/),
    });
  });

  test.each(["", "vitalik.eth", `0x${"1".repeat(41)}`])("A wallet of %j is a 400", async (wallet) => {
    const answer = await verify(wallet);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: "malformed_request", detail: expect.stringContaining("wallet") });
  });
});

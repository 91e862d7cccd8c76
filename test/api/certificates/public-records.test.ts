import { calculateJwkThumbprint } from "jose";
import pg from "pg";
import type { Address, LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import type { Behavior } from "../../../api/certificates/certificate.ts";
import type { SingleProduct } from "../../../api/certificates/products.ts";
import { formatUsd } from "../../../api/platform/money.ts";
import { createScoreCertificates } from "../../../api/score/store.ts";
import { boardSeeder } from "../../support/board.ts";
import { FAILING, SCAMMED } from "../../support/certificates/samples.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { broadcast } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";
import { buy } from "../../support/sessions/agents.ts";
import { openShop } from "../../support/sessions/shop.ts";

const get = (path: string, accept = "application/json") => send(`${service.url}${path}`, { headers: { accept } });

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const payer = await newPayer(chain);
const bought = await post(`${service.url}/test/basic`, v2(await signPayment(payer)));
expect(bought.status).toBe(200);

describe("/receipt", () => {
  const transaction = () => (bought.body.settlement as { transaction: string }).transaction;

  test("A receipt is found by its transaction in any letter case", async () => {
    const upper = `0x${transaction().slice(2).toUpperCase()}`;
    for (const query of [`transaction=${transaction()}`, `transaction=${upper}`, `tx=${transaction()}`]) {
      const { status, body } = await get(`/receipt?${query}`);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        transaction: transaction(),
        network: "eip155:8453",
        block: expect.any(Number),
        final: expect.any(Boolean),
        explorer_url: `https://basescan.org/tx/${transaction()}`,
        purchases: [
          {
            payer: payer.address.toLowerCase(),
            pay_to: PAY_TO,
            amount: String(PRICES.basic),
            amount_usd: formatUsd(PRICES.basic),
            resource: `${service.url}/test/basic`,
            record_url: bought.body.cert_url,
          },
        ],
      });
    }
  });

  test("A receipt shows when its settlement is final", async () => {
    await chain.mine(3);
    await expect
      .poll(async () => (await get(`/receipt?transaction=${transaction()}`)).body.final, {
        timeout: 30_000,
        interval: 200,
      })
      .toBe(true);
  });

  test("A transaction without a purchase gets 404", async () => {
    expectProblem(await get(`/receipt?tx=0x${"ab".repeat(32)}`), 404, "not_found");
    const other = await broadcast(chain, await signPayment(payer, { to: payer.address }));
    expectProblem(await get(`/receipt?tx=${other}`), 404, "not_found");
  });

  const [hash, other] = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(32)}`];
  test.each(["", `?transaction=${hash.slice(2)}`, `?transaction=${hash}&tx=${other}`])(
    "/receipt%s gets 400 because it has no single transaction hash",
    async (query) => expectProblem(await get(`/receipt${query}`), 400, "malformed_request"),
  );
});

describe("Free routes", () => {
  test("/inspect lists the tests with their prices and instructions", async () => {
    const { status, body } = await get("/inspect");
    expect(status).toBe(200);
    const entry = (id: SingleProduct, capability: string) => ({
      id,
      method: "POST",
      path: `/test/${id}`,
      url: `${service.url}/test/${id}`,
      price: formatUsd(PRICES[id]),
      price_atomic: String(PRICES[id]),
      total_cost: formatUsd(PRICES[id]),
      capability,
      steps: expect.arrayContaining([expect.any(String)]),
      how_to_run: expect.any(String),
    });
    expect(body.menu).toEqual(
      expect.arrayContaining([
        expect.objectContaining(entry("basic", "can_pay")),
        expect.objectContaining(entry("suite", "full_suite")),
      ]),
    );
  });

  test("The public keys are Ed25519 and identified by their thumbprints", async () => {
    const { status, body, headers } = await get("/.well-known/jwks.json");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/json/);
    const { keys } = body as { keys: { x: string; kid: string }[] };
    expect(keys).toHaveLength(1);
    for (const { x, kid, ...rest } of keys) {
      expect(rest).toEqual({ kty: "OKP", crv: "Ed25519", use: "sig", alg: "EdDSA" });
      expect(kid).toBe(await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x }));
    }
  });
});

describe("A certificate that does not exist", () => {
  test.each(["/cert/0123456789abcdef", "/cert/%00"])(
    "%s gets 404 with a problem document for programs and a page for browsers",
    async (path) => {
      expectProblem(await get(path), 404, "not_found");
      const page = await get(path, "text/html,application/xhtml+xml");
      expect(page.status).toBe(404);
      expect(page.headers.get("content-type")).toMatch(/^text\/html/);
      expect(page.text).toMatch(/<!doctype html>/i);
    },
  );
});

describe("A certificate", () => {
  test("One URL returns a page to browsers and a record to programs", async () => {
    const path = new URL(String(bought.body.cert_url)).pathname;
    const page = await get(path, "text/html");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.headers.get("vary")).toMatch(/accept/i);
    expect(page.text).toContain((bought.body.settlement as { explorer_url: string }).explorer_url);
    const record = await get(path, "*/*");
    expect(record.headers.get("vary")).toMatch(/accept/i);
    expect(record.body).toMatchObject({ ...bought.body, fresh: true, expired: false, reversed: false });
  });

  test("A badge can be cached and revalidated", async () => {
    const badge = await send(String(bought.body.badge_url));
    expect(badge.status).toBe(200);
    expect(badge.headers.get("content-type")).toMatch(/^image\/svg\+xml/);
    expect(badge.headers.get("cache-control")).toMatch(/max-age=\d{1,3}$/);
    expect(badge.text).toMatch(/role="img"/);
    expect(badge.text).toMatch(/<title>.*valid until \d{4}-\d{2}-\d{2}.*<\/title>/);
    const etag = badge.headers.get("etag") ?? "";
    const again = await send(String(bought.body.badge_url), { headers: { "if-none-match": etag } });
    expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
    const other = await send(String(bought.body.badge_url), { headers: { "if-none-match": '"other"' } });
    expect(other.status).toBe(200);
  });
});

/** Payments that a shop obtained and forwarded to this service, and windows beyond any calendar. */

const seeder = await forFile(boardSeeder(service.database));

const lower = (address: string) => address.toLowerCase() as Address;
const verify = (wallet: string): Promise<Answer> => send(`${service.url}/verify?wallet=${wallet}`);

async function buyTest(payer: LocalAccount, product: SingleProduct): Promise<void> {
  const signed = await signPayment(payer, { value: PRICES[product] });
  const { status } = await post(`${service.url}/test/${product}`, v2(signed));
  expect(status).toBe(200);
}

describe("A shop that quotes a test's price with a long timeout and forwards the payment", () => {
  const page = (path: string) => send(`${service.url}${path}`, { headers: { accept: "text/html" } });
  const seen = async (wallet: string) => {
    const { checked_at: _, ...record } = (await verify(wallet)).body;
    const { credentialSubject } = (await send(`${service.url}/credential/${wallet}`)).body;
    const shown = await page(`/verify?wallet=${wallet}`);
    return { record, credentialSubject, page: shown.text };
  };
  const facts = async (wallet: string) => {
    const pool = new pg.Pool({ connectionString: service.database.apiUrl });
    const found = await createScoreCertificates(pool).newest([lower(wallet)]);
    await pool.end();
    return found;
  };
  /** Lets the customer's stock client pay the shop's quote, and lets the shop forward the payment to the suite. */
  async function forward(payer: LocalAccount): Promise<Answer> {
    const shop = await openShop({ payTo: PAY_TO, value: PRICES.suite, maxTimeoutSeconds: 3_600 });
    expect(await buy(`${shop.url}/goods`, payer)).toMatchObject({ status: 200, body: { status: "sold" } });
    const answer = await shop.handIn(`${service.url}/test/suite`);
    shop.stop();
    expect(answer).toMatchObject({ status: 200, body: { verdict: "fail", checks: { authorization_expiry: "fail" } } });
    return answer;
  }

  test("A certified customer's published records and score facts do not change", async () => {
    const payer = await newPayer(chain);
    await buyTest(payer, "basic");
    await buyTest(payer, "suite");
    const before = [await seen(payer.address), await facts(payer.address)];
    expect(before[0]).toMatchObject({ record: { verified: true, reasons: [] } });
    await forward(payer);
    expect([await seen(payer.address), await facts(payer.address)]).toEqual(before);
    const { agents } = (await send(`${service.url}/board`)).body as { agents: { wallet: string }[] };
    expect(agents.map(({ wallet }) => wallet)).toContain(lower(payer.address));
  });

  test("A customer without a certificate gets no FAIL and no facts for its score", async () => {
    const payer = await newPayer(chain);
    const before = await seen(payer.address);
    await forward(payer);
    const after = await seen(payer.address);
    expect(after.record).toEqual({
      ...before.record,
      tested: true,
      reasons: [expect.objectContaining({ code: "no_pass", text: expect.stringContaining("for or against") })],
    });
    expect([after.page, before.page].map((text) => text.includes('<h1><span class="mark gray">'))).toEqual([
      true,
      true,
    ]);
    expect(after.page).not.toMatch(/FAIL|Non-conformant/);
    expect(await facts(payer.address)).toEqual([[]]);
  });

  test("A payment forwarded to the basic test is a PASS for the customer", async () => {
    const payer = await newPayer(chain);
    const shop = await openShop({ payTo: PAY_TO, value: PRICES.basic, maxTimeoutSeconds: 3_600 });
    await buy(`${shop.url}/goods`, payer);
    const answer = await shop.handIn(`${service.url}/test/basic`);
    shop.stop();
    expect(answer).toMatchObject({ status: 200, body: { verdict: "pass" } });
    expect((await verify(payer.address)).body).toMatchObject({ verified: true, reasons: [] });
  });

  test("Repeated forwarding does not hide a customer's PASS", async () => {
    const wallet = lower((await newPayer(chain, 0n)).address);
    const forwarded = { wallet, product: "suite", result: "fail" } as const;
    const minute = (number: number) => new Date(Date.now() - number * 60_000);
    await seeder.add({ wallet, issuedAt: minute(200) });
    await seeder.add(...Array.from({ length: 101 }, (_, index) => ({ ...forwarded, issuedAt: minute(index) })));
    expect((await verify(wallet)).body).toMatchObject({
      verified: true,
      certs: [{ product: "basic", result: "pass" }],
    });
  });
});

test.each([99, 100])("A FAIL still counts after %d newer PASSes", async (newer) => {
  const wallet = lower((await newPayer(chain, 0n)).address);
  const minute = (number: number) => new Date(Date.now() - number * 60_000);
  await seeder.add({ wallet, product: "scam", result: "fail", issuedAt: minute(200) });
  await seeder.add(...Array.from({ length: newer }, (_, index) => ({ wallet, issuedAt: minute(index) })));
  const { body } = await verify(wallet);
  expect(body).toMatchObject({ verified: false, reasons: [{ code: "current_fail", product: "scam" }] });
  expect(body).toHaveProperty("certs.length", newer + 1);
});

describe("A FAIL with an extreme validBefore", () => {
  const YEAR_10000 = 253_402_300_800n;
  const seconds = [0n, YEAR_10000 - 1n, YEAR_10000, 2n ** 256n - 1n];
  const signed = SCAMMED.detected.behaviour as Behavior;
  const far = (until: bigint) => ({
    scam: {
      ...SCAMMED.detected,
      behaviour: {
        ...signed,
        signature: {
          ...(signed.signature as NonNullable<Behavior["signature"]>),
          valid_before: String(until),
          proof: "The authorization stays valid for more than 24 hours, so only its digest and signer are published.",
        },
      },
    },
    suite: {
      ...FAILING.detected,
      authorization_window: {
        valid_after: String(until),
        valid_before: String(until),
        seconds_left_when_received: Number(until),
        limit_seconds: 900,
      },
    },
  });

  test.each(seconds)("A FAIL with validBefore %d is readable on every page and in JSON", async (until) => {
    const wallet = lower((await newPayer(chain, 0n)).address);
    const issuedAt = new Date();
    for (const product of ["scam", "suite"] as const) {
      const detected = far(until)[product];
      const [id] = await seeder.add({ wallet, issuedAt, product, result: "fail", detected });
      const paths = [`/cert/${id}`, `/verify?wallet=${wallet}`, "/board", "/stats"];
      for (const accept of ["text/html", "application/json"])
        for (const path of [...paths, `/credential/${wallet}`, `/badge/${id}.svg`, `/cert/${id}/og.png`])
          expect([path, (await send(`${service.url}${path}`, { headers: { accept } })).status]).toEqual([path, 200]);
      const { text } = await send(`${service.url}/cert/${id}`, { headers: { accept: "text/html" } });
      if (until >= YEAR_10000) expect(text).toContain(`unix time ${until}`);
      else expect(text).toMatch(/<time datetime="\d{4}-|any time/);
      if (product === "scam") expect(text).toContain("only its digest and signer are published");
    }
  });
});

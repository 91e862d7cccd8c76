import { calculateJwkThumbprint } from "jose";
import { describe, expect, test } from "vitest";
import type { SingleProduct } from "../../../api/certificates/products.ts";
import { formatUsd } from "../../../api/platform/money.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { broadcast } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

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

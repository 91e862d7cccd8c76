import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { hold } from "../../support/openapi/answers.ts";
import {
  diagnosticOf,
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../support/payments/expectations.ts";
import { nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, challengeOf, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const KIB = 1024;
const USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = () => `${service.url}/test/basic`;
const payer = await newPayer(chain);

interface RawRequest {
  readonly method: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** Sent in these pieces, without a declared length unless the headers declare one. */
  readonly chunks?: readonly (string | Buffer)[];
}

/**
 * Sends a request that `fetch` would not send. Returns the response even when the server closes the connection before
 * it has read the whole request.
 */
const raw = ({ method, path = "/test/basic", headers = {}, chunks = [] }: RawRequest): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(service.url);
    const outgoing = request({ hostname, port, method, path, headers, agent: false }, async (response) => {
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      const status = response.statusCode ?? 0;
      const got = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
      await hold({ method, url: `${service.url}${path}`, status, contentType: got.get("content-type"), text });
      resolve({ status, headers: got, text, body: text.startsWith("{") ? JSON.parse(text) : {} });
    });
    outgoing.on("error", reject);
    for (const chunk of chunks) outgoing.write(chunk);
    outgoing.end();
  });

describe("Payment headers", () => {
  test.each<[string, Record<string, string>]>([
    ["that is not base64", { "PAYMENT-SIGNATURE": "{not base64}" }],
    ["of 12 KiB and a byte", { "PAYMENT-SIGNATURE": "A".repeat(12 * KIB + 1) }],
  ])("A payment header %s is rejected with 400", async (_, headers) => {
    const answer = await post(basic(), headers);
    expectProblem(answer, 400, "malformed_payment");
    expect(answer.text.length).toBeLessThan(KIB);
  });

  test("A payment header above the server's own limit is rejected with 431 and a problem document", async () => {
    const answer = await raw({ method: "POST", headers: { "PAYMENT-SIGNATURE": "A".repeat(100 * KIB) } });
    expectProblem(answer, 431, "headers_too_large");
  });
});

describe("Request bodies", () => {
  test("An unpaid request gets 402, whatever its body contains", async () => {
    for (const body of [null, "", "{", "not JSON", "\u0000", '{"a":1}', "x".repeat(64 * KIB)])
      expect(expectPaymentRequired(await post(basic(), {}, body))).toMatch(/Payment required/);
  });

  const claim = { category: "taste", conditions: {}, parties: { payer: "0x1", payee: "0x2" } };

  test.each<[string, string, string, RegExp]>([
    ["/score", "{}", "malformed_request", /^This body would be refused, and nothing charged: wallet: /],
    ["/score", '{"wallet":"0x12"}', "malformed_request", /wallet: expected a wallet: 0x and 40 hex digits/],
    ["/score", "{", "malformed_request", /The body is not JSON/],
    ["/score/batch", '{"wallets":[]}', "unacceptable", /wallets: expected 1 to 25 wallets/],
    ["/arbiter/verify", JSON.stringify(claim), "malformed_request", /parties/],
    ["/score/batch", JSON.stringify({ wallets: Array(400).fill("x") }), "malformed_request", /and 397 more/],
  ])("The 402 of %s starts by rejecting the body %s", async (...[path, body, code, why]) => {
    const answer = await post(service.url + path, {}, body);
    expect(expectPaymentRequired(answer)).toMatch(why);
    expect(answer.body.error).toMatch(/^This body would be refused/);
    expect(challengeOf(answer).accepts).toHaveLength(1);
    expect(diagnosticOf(answer)).toMatchObject({
      ...{ code, retry: "never" },
      errors: expect.arrayContaining([{ path: expect.any(String), message: expect.any(String) }]),
    });
  });

  test("A body that never ends does not delay the 402", async () => {
    const { hostname, port } = new URL(service.url);
    const answer = await new Promise<number>((resolve, reject) => {
      const open = request({ hostname, port, method: "POST", path: "/test/basic", agent: false }, (response) => {
        resolve(response.statusCode ?? 0);
        open.destroy();
      });
      open.on("error", reject);
      open.write("{");
    });
    expect(answer).toBe(402);
  });

  test("A paid request whose body is not JSON gets 400 and is not charged", async () => {
    for (const body of ["{", "not JSON", "{}{}"]) {
      const answer = await post(basic(), v2(await signPayment(payer)), body);
      expectProblem(answer, 400, "malformed_request");
    }
    await nothingCharged(chain, payer);
  });

  test.each<[string, string]>([
    ["contains a NUL character", '{"a":"\\u0000"}'],
    ["contains half a surrogate pair", '["\\ud800"]'],
  ])("A paid request whose body %s cannot be stored, so it gets 400 and is not charged", async (_, body) => {
    expectProblem(await post(basic(), v2(await signPayment(payer)), body), 400, "malformed_request");
    await nothingCharged(chain, payer);
  });

  test("A body declared one byte above 64 KiB gets 413, paid or not, and is not charged", async () => {
    const body = "x".repeat(64 * KIB + 1);
    expectProblem(await post(basic(), {}, body), 413, "body_too_large");
    expectProblem(await post(basic(), v2(await signPayment(payer)), body), 413, "body_too_large");
    await nothingCharged(chain, payer);
  });

  test("A paid body one byte above 64 KiB without a declared length gets 413 and is not charged", async () => {
    const chunks = [...Array(64).fill("x".repeat(KIB)), "x"];
    const answer = await raw({ method: "POST", headers: v2(await signPayment(payer)), chunks });
    expectProblem(answer, 413, "body_too_large");
    await nothingCharged(chain, payer);
  });

  test("A body of exactly 64 KiB is accepted", async () => {
    const rich = await newPayer(chain);
    const body = JSON.stringify("x".repeat(64 * KIB - 2));
    expect(body).toHaveLength(64 * KIB);
    const declared = await post(basic(), v2(await signPayment(rich)), body);
    const chunked = await raw({
      method: "POST",
      headers: v2(await signPayment(rich)),
      chunks: [body.slice(0, 9), body.slice(9)],
    });
    expect([declared.status, chunked.status]).toEqual([200, 200]);
    expect(await settlements(chain, rich.address)).toHaveLength(2);
  });
});

describe("The 402 response", () => {
  test("A 402 carries the x402 version 2 challenge in its header", async () => {
    const answer = await post(basic());
    const { accepts, resource, x402Version, extensions } = challengeOf(answer);
    expect(x402Version).toBe(2);
    expect(accepts).toEqual([
      {
        scheme: "exact",
        network: "eip155:8453",
        amount: String(PRICES.basic),
        asset: USDC,
        payTo: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
        maxTimeoutSeconds: 120,
        extra: { name: "USD Coin", version: "2" },
      },
    ]);
    expect(accepts[0]?.payTo.toLowerCase()).toBe(PAY_TO);
    expect(resource).toMatchObject({ url: basic(), description: expect.any(String), mimeType: "application/json" });
    expect(Object.keys(extensions ?? {}).sort()).toEqual(["bazaar", "offer-receipt", "payment-identifier"]);
  });

  test("A 402 carries the x402 version 1 challenge in its body", async () => {
    const { body } = await post(`${service.url}/test/suite`);
    expect(body).toEqual({
      x402Version: 1,
      error: expect.any(String),
      accepts: [
        {
          scheme: "exact",
          network: "base",
          maxAmountRequired: String(PRICES.suite),
          resource: `${service.url}/test/suite`,
          description: expect.any(String),
          mimeType: "application/json",
          payTo: expect.stringMatching(new RegExp(`^${PAY_TO}$`, "i")),
          maxTimeoutSeconds: 120,
          asset: USDC,
          outputSchema: expect.objectContaining({ input: expect.any(Object) }),
          extra: { name: "USD Coin", version: "2" },
        },
      ],
    });
  });

  test("A 402 names the published URL and ignores the request's host headers", async () => {
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" };
    const answer = await raw({ method: "POST", headers });
    expectPaymentRequired(answer);
    expect(challengeOf(answer).resource?.url).toBe(basic());
    expect(answer.text + Buffer.from(answer.headers.get("payment-required") ?? "", "base64")).not.toContain("evil");
  });
});

describe("Unsupported methods", () => {
  test.each(["GET", "HEAD"])("%s on a paid route is 405 with Allow", async (method) => {
    const answer = await raw({ method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST, OPTIONS");
    if (method !== "HEAD") expectProblem(answer, 405, "method_not_allowed");
  });

  test.each(["/board", "/cert/0123456789abcdef"])("POST on %s is 405 with Allow", async (path) => {
    const answer = await raw({ method: "POST", path });
    expectProblem(answer, 405, "method_not_allowed");
    expect(answer.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  });

  test("PUT on a path with a GET and a POST route lists both methods in Allow", async () =>
    expect((await raw({ method: "PUT", path: "/verify" })).headers.get("allow")).toBe("GET, HEAD, POST, OPTIONS"));
});

test("No response, log line, or database row contains a plaintext signature", () => expectNoSignatureAnywhere(service));

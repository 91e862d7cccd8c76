import type { RequestListener } from "node:http";
import { createRequire } from "node:module";
import { getRequestListener } from "@hono/node-server";
import { type FacilitatorClient, HTTPFacilitatorClient, type RoutesConfig } from "@x402/core/server";
import { ExactEvmScheme as ExactClient } from "@x402/evm/exact/client";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddlewareFromHTTPServer as stockExpress } from "@x402/express";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { paymentMiddlewareFromHTTPServer as stockHono, x402HTTPResourceServer, x402ResourceServer } from "@x402/hono";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { setSignedCookie } from "hono/cookie";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type GateOptions, verifiedOnly } from "../../../packages/gate/src/index.ts";
import { lookUp } from "../../../packages/gate/src/look-up.ts";
import { payerOf } from "../../../packages/gate/src/payer.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import {
  expectGate,
  FAILED,
  HAIKU,
  payment,
  type Send,
  SHOP,
  startGateScene,
  UNTESTED,
  VERIFIED,
} from "../../support/sellers/gate-scene.ts";
import { stockFacilitator } from "../../support/sellers/stock-facilitator.ts";

const scene = await startGateScene();
const { chain, service, closedUrl } = scene;
const accepts = { scheme: "exact", price: "$0.01", network: "eip155:8453", payTo: SHOP } as const;
const handler = vi.fn(() => HAIKU);
const log = vi.fn();
afterEach(() => {
  handler.mockClear();
  log.mockClear();
});

const x402 = (facilitator: FacilitatorClient = new HTTPFacilitatorClient({ url: scene.facilitatorUrl })) =>
  new x402ResourceServer(facilitator).register("eip155:8453", new ExactEvmScheme());

interface Plan extends Partial<GateOptions> {
  readonly routes?: RoutesConfig;
  readonly server?: x402ResourceServer;
}

const guarded = ({ routes = { "/haiku": { accepts } }, server = x402(), ...options }: Plan) =>
  verifiedOnly({ service: service.url, log, ...options })(new x402HTTPResourceServer(server, routes));

function openHono(plan: Plan = {}): Hono {
  const app = new Hono();
  app.use(stockHono(guarded(plan)));
  app.get("/haiku", (c) => c.json(handler()));
  app.post("/haiku", (c) => c.json(handler()));
  return app;
}

interface ExpressApp extends RequestListener {
  use(handler: unknown): void;
  all(path: string, handler: (request: unknown, response: { json(value: unknown): void }) => void): void;
  get: ExpressApp["all"];
}
const express: () => ExpressApp = createRequire(import.meta.url)("express");

async function openExpress(plan: Plan = {}): Promise<string> {
  const app = express();
  app.use(stockExpress(guarded(plan)));
  app.get("/haiku", (_, response) => response.json(handler()));
  app.all("/haiku", (_, response) => response.json(handler()));
  return (await forFile(serveHttp(app))).url;
}

type Open = (plan?: Plan) => Promise<(headers: Record<string, string>, method?: string) => Promise<Response>>;

const SERVERS: readonly (readonly [string, Open])[] = [
  [
    "@x402/hono",
    async (plan) => {
      const app = openHono(plan);
      return async (headers, method = "POST") => app.request("http://shop.test/haiku", { method, headers });
    },
  ],
  [
    "@x402/express",
    async (plan) => {
      const url = await openExpress(plan);
      return (headers, method = "POST") => fetch(`${url}/haiku`, { method, headers });
    },
  ],
];

describe.each(SERVERS)("%s", (_, open) => {
  test("It sells only to a verified wallet, in every form of payment", async () => {
    await expectGate(scene, await open(), await open({ service: closedUrl }));
    expect(handler).toHaveBeenCalledTimes(4);
    expect(log).toHaveBeenCalledWith("A wallet could not be looked up.", expect.any(Error));
  });

  test("A HEAD request to a GET route must be paid for too", async () => {
    const send = await open({ routes: { "GET /haiku": { accepts } } });
    expect((await send({}, "HEAD")).status).toBe(402);
    expect((await send(await payment(FAILED), "HEAD")).status).toBe(403);
    expect(handler).not.toHaveBeenCalled();
    expect((await send(await payment(VERIFIED), "HEAD")).status).toBe(200);
    expect((await send({}, "GET")).status).toBe(402);
  });
});

const LONG = { haiku: "An old silent pond / ".repeat(200) };
const BESIDE: readonly (readonly [string, (plan?: Plan) => Promise<Send>])[] = [
  [
    "Express with express-session and compression",
    async (plan = {}) => {
      const require = createRequire(import.meta.url);
      const app = express();
      app.use(require("express-session")({ name: "sid", secret: "s", resave: false, saveUninitialized: true }));
      app.use(require("compression")());
      app.use(stockExpress(guarded(plan)));
      app.all("/haiku", (_, response) => response.json(LONG));
      const { url } = await forFile(serveHttp(app));
      return (headers) => fetch(`${url}/haiku`, { method: "POST", headers });
    },
  ],
  [
    "Hono with a cookie session and compress()",
    async (plan = {}) => {
      const app = new Hono().use(compress(), async (c, next) => {
        await next();
        await setSignedCookie(c, "sid", "visitor", "s");
      });
      app.use(stockHono(guarded(plan))).post("/haiku", (c) => c.json(LONG));
      const { url } = await forFile(serveHttp(getRequestListener(app.fetch)));
      return (headers) => fetch(`${url}/haiku`, { method: "POST", headers });
    },
  ],
];

test.each(BESIDE)("%s: Every response has its session's cookie, and what is sold is compressed", async (_, open) => {
  const [send, down] = [await open(), await open({ service: closedUrl })];
  const answers = [
    await send({}),
    await send(await payment(VERIFIED)),
    await send(await payment(FAILED)),
    await down(await payment(VERIFIED)),
  ];
  expect(answers.map(({ status }) => status)).toEqual([402, 200, 403, 503]);
  for (const { headers } of answers) expect(headers.getSetCookie().join()).toMatch(/^sid=[^,]+$/);
  const [, sold] = answers;
  expect([sold?.headers.get("content-encoding"), await sold?.json()]).toEqual(["gzip", LONG]);
});

const hono = (plan: Plan = {}): Send => {
  const app = openHono(plan);
  return async (headers) => app.request("http://shop.test/haiku", { method: "POST", headers });
};

test("The stock client buys with a verified wallet and is refused with another", async () => {
  const { url } = await forFile(serveHttp(getRequestListener(openHono().fetch)));
  for (const [payer, status] of [
    [VERIFIED, 200],
    [FAILED, 403],
    [UNTESTED, 403],
  ] as const) {
    const client = new x402Client().register("eip155:*", new ExactClient(payer));
    expect((await wrapFetchWithPayment(fetch, client)(`${url}/haiku`)).status).toBe(status);
  }
});

test.each<[NonNullable<GateOptions["require"]>, readonly [number, number], readonly string[]]>([
  ["can_pay", [200, 403], []],
  [["can_pay", "verified"], [200, 403], []],
  [["can_pay", "retry_safety"], [403, 403], ["retry_safety"]],
])("With require %j, a wallet must also be verified", async (require, [verified, failed], missing) => {
  const send = hono({ require });
  const answer = await send(await payment(VERIFIED));
  expect([answer.status, (await send(await payment(FAILED))).status]).toEqual([verified, failed]);
  if (verified === 403)
    expect(await answer.json()).toMatchObject({
      error: `Wallet ${VERIFIED.address} has no current PASS for retry_safety. Nothing was charged.`,
      missing,
      reasons: [],
    });
});

test("An invalid service URL or requirement is refused when the shop starts", () => {
  expect(() => verifiedOnly({ service: "trust.example" })).toThrow("service is not a URL: trust.example");
  expect(() => verifiedOnly({ service: service.url, require: "solvent" as never })).toThrow(
    /"solvent" cannot be required: expected verified, can_pay/,
  );
  expect(() => verifiedOnly({ service: service.url, require: [] })).toThrow(/cannot be required/);
});

test.each<[string, (record: object) => { status?: number; body?: string }]>([
  ["the record of another wallet", (record) => ({ body: JSON.stringify(record) })],
  ["null", () => ({ body: "null" })],
  ["an error", () => ({ status: 500, body: '{"verified":true}' })],
  ["a redirect", () => ({ status: 302 })],
  ["nothing", () => ({})],
])("No wallet is admitted if the service returns %s", async (_, change) => {
  const found = await fetch(`${service.url}/verify?wallet=${VERIFIED.address}`);
  const { status = 200, body } = change((await found.json()) as object);
  const fake = await serveHttp(async (_, response) => {
    response.writeHead(status, status === 302 ? { location: `${service.url}/verify?wallet=${VERIFIED.address}` } : {});
    if (body !== undefined || status !== 200) response.end(body);
  });
  await forFile(fake);
  expect((await hono({ service: fake.url })(await payment(UNTESTED))).status).toBe(503);
  expect(log).toHaveBeenCalledTimes(1);
});

test("A PASS in test money counts only on that test network", async () => {
  const found = await fetch(`${service.url}/verify?wallet=${VERIFIED.address}`);
  const record = { ...((await found.json()) as object), test_network: "eip155:84532" };
  const rehearsal = await forFile(serveHttp((_, response) => response.end(JSON.stringify(record))));
  const missingOn = async (network: string) =>
    (await lookUp(rehearsal.url, VERIFIED.address, { required: ["verified"], network })).missing;
  expect([await missingOn("eip155:8453"), await missingOn("eip155:84532")]).toEqual([["verified"], []]);
});

test("A shop with a hook that verifies payments before the gate sells nothing", async () => {
  const skip = async () => ({ skip: true, result: { isValid: true } }) as const;
  const held = await chain.usdcBalance(SHOP);
  const answer = await hono({ server: x402().onBeforeVerify(skip) })(await payment(FAILED));
  expect([answer.status, await answer.json()]).toEqual([500, { error: "The gate did not judge this payment." }]);
  expect([handler.mock.calls.length, await chain.usdcBalance(SHOP)]).toEqual([0, held]);
});

test("A gate whose log throws sells nothing", async () => {
  const broken = () => {
    throw new Error("the disk is full");
  };
  expect((await hono({ service: closedUrl, log: broken })(await payment(VERIFIED))).status).toBe(500);
  expect(handler).not.toHaveBeenCalled();
});

test("A facilitator that would charge another wallet than the gate judged is not used", async () => {
  const stock = stockFacilitator(chain);
  const verify: FacilitatorClient["verify"] = async (...asked) => ({
    ...(await stock.verify(...asked)),
    payer: FAILED.address,
  });
  const held = await chain.usdcBalance(SHOP);
  const answer = await hono({ server: x402({ ...stock, verify }) })(await payment(VERIFIED));
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ error: expect.stringContaining("a different wallet") });
  expect(await chain.usdcBalance(SHOP)).toBe(held);
});

test.each([
  { scheme: "batch-settlement", network: "eip155:8453" },
  { scheme: "exact", network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" },
])("A payment by $scheme on $network, which may name its payer elsewhere, is refused", (terms) => {
  const payload = { authorization: { from: VERIFIED.address } };
  expect(payerOf(payload, { scheme: "exact", network: "eip155:84532" })).toBe(VERIFIED.address);
  expect(() => payerOf(payload, terms)).toThrow("This shop cannot identify the payer");
});

test("Routes of the same x402 server without a gate sell to everyone", async () => {
  const server = x402();
  const app = new Hono();
  app.use(stockHono(guarded({ server })));
  app.use(stockHono(guarded({ server, require: "retry_safety", routes: { "/sonnet": { accepts } } })));
  app.use(stockHono(new x402HTTPResourceServer(server, { "/limerick": { accepts } })));
  app.get("/:poem", (c) => c.json(HAIKU));
  const statuses = await Promise.all(
    ["haiku", "sonnet", "limerick"].flatMap((poem) =>
      [VERIFIED, FAILED].map(
        async (payer) => (await app.request(`http://shop.test/${poem}`, { headers: await payment(payer) })).status,
      ),
    ),
  );
  expect(statuses).toEqual([200, 403, 403, 403, 200, 200]);
});

test("A request that matches no route is not served for free", async () => {
  const shop = guarded({ routes: { "POST /sonnet": { accepts } } });
  const adapter = { getMethod: () => "POST", getHeader: () => undefined } as never;
  const result = await shop.processHTTPRequest({ adapter, path: "/haiku", method: "POST" });
  expect(result).toMatchObject({
    type: "payment-error",
    response: { status: 500, body: { error: expect.stringMatching(/^No paid route matches POST \/haiku/) } },
  });
});

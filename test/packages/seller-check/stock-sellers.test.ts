import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import { serve } from "@hono/node-server";
import { x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware as stockExpress } from "@x402/express";
import { paymentMiddleware as stockHono } from "@x402/hono";
import { type Handler, Hono, type MiddlewareHandler } from "hono";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { escrowed, memoryStore } from "../../../packages/escrow/src/index.ts";
import { type ExpressMiddleware, replayable as replayableExpress } from "../../../packages/replayable/src/express.ts";
import { replayable as replayableHono } from "../../../packages/replayable/src/index.ts";
import { replayable as replayableNext } from "../../../packages/replayable/src/next.ts";
import { haiku, openShop, startSaleScene } from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { failedStatements, holdExam, outcomes } from "../../support/sellers/held-exam.ts";
import { stockFacilitator } from "../../support/sellers/stock-facilitator.ts";

/** The part of Express that these tests use. Express has no types. */
interface ExpressApp extends RequestListener {
  use(handler: unknown): void;
  get(path: string, handler: (request: unknown, response: { json(value: unknown): void }) => void): void;
}
const express: () => ExpressApp = createRequire(import.meta.url)("express");

const scene = await forFile(startSaleScene());
const { chain, operator, escrow } = scene;
const accepts = {
  scheme: "exact",
  price: "$0.001",
  network: "eip155:8453",
  payTo: "0x00000000000000000000000000000000000c0ffe",
} as const;
const ROUTES = {
  "GET /haiku": { accepts, description: "a haiku" },
  "GET /sonnet": { accepts, description: "a sonnet" },
};
const resourceServer = () =>
  new x402ResourceServer(stockFacilitator(chain)).register("eip155:8453", new ExactEvmScheme());

/** How often a handler ran. */
let runs = 0;
const poem = () => ({ poem: "rain on the roof", run: ++runs });

type Routes = typeof ROUTES | typeof CAREFUL;

const itself = <M>(middleware: M): M => middleware;

function honoApp(routes: Routes, wrapped: (stock: MiddlewareHandler) => MiddlewareHandler): Hono {
  const app = new Hono();
  app.use(wrapped(stockHono(routes, resourceServer())));
  app.get("/haiku", (c) => c.json(poem()));
  app.get("/sonnet", (c) => c.json(poem()));
  return app;
}

function served(fetch: (request: Request) => Response | Promise<Response>): Promise<string> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => resolve(`http://127.0.0.1:${port}`));
    void forFile({ stop: () => server.close() });
  });
}

const openHono = (routes: Routes = ROUTES, wrapped: (stock: MiddlewareHandler) => MiddlewareHandler = itself) =>
  served(honoApp(routes, wrapped).fetch);

async function openExpress(
  routes: Routes = ROUTES,
  wrapped: (stock: ExpressMiddleware) => unknown = itself,
): Promise<string> {
  const app = express();
  app.use(wrapped(stockExpress(routes, resourceServer()) as ExpressMiddleware));
  app.get("/haiku", (_, response) => response.json(poem()));
  app.get("/sonnet", (_, response) => response.json(poem()));
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await forFile({
    stop() {
      server.closeAllConnections();
      server.close();
    },
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const STOCK = [
  ["@x402/hono", openHono],
  ["@x402/express", openExpress],
] as const;

/** Routes as a careful seller declares them: for every method, each with another price. */
const CAREFUL = {
  "/haiku": { accepts, description: "a haiku" },
  "/sonnet": { accepts: { ...accepts, price: "$0.0015" }, description: "a sonnet" },
};

/** HEAD reaches the handler of GET but not the middleware's rule for GET. */
const FREE_HEAD = "terms: HEAD is refused or quoted the same (got 200)";

test.each(STOCK)("The stock middleware of %s sells two routes for one payment", async (_, open) => {
  const url = await open();
  const other = { url: `${url}/sonnet`, method: "GET", body: null };
  const report = await holdExam(chain, { resource: { url: `${url}/haiku` }, other });
  expect(failedStatements(report)).toEqual([
    FREE_HEAD,
    `binding: A payment for ${url}/haiku is refused at ${other.url} (got 200)`,
    "binding: Nothing is charged there",
  ]);
  expect(outcomes(report)).toMatchObject({ purchase: "pass", replay: "pass", forgery: "pass", caching: "pass" });
  expect(report.level).toBeNull();
});

test.each(STOCK)("The stock middleware of %s stores no response for a buyer who lost it", async (_, open) => {
  const url = await open();
  runs = 0;
  const report = await holdExam(chain, { resource: { url: `${url}/haiku` } });
  expect(failedStatements(report)).toEqual([
    FREE_HEAD,
    "lost_answer: The same payment brings the lost answer (got 402)",
    "lost_answer: No buyer is charged without a result",
  ]);
  expect(outcomes(report)).toMatchObject({ binding: "not_applicable" });
  // HEAD and each copy of a payment that had not yet settled also ran the handler.
  expect(runs).toBeGreaterThan(4);
});

test.each(STOCK)("A careful seller with the stock middleware of %s reaches level safe", async (_, open) => {
  const url = await open(CAREFUL);
  const report = await holdExam(chain, {
    resource: { url: `${url}/haiku` },
    other: { url: `${url}/sonnet`, method: "GET", body: null },
  });
  expect(failedStatements(report)).toEqual([
    "lost_answer: The same payment brings the lost answer (got 402)",
    "lost_answer: No buyer is charged without a result",
  ]);
  expect(report.level).toBe("safe");
});

/** Two routes for every method at one price, so a payment for one could buy the other. */
const ONE_PRICE = { "/haiku": CAREFUL["/haiku"], "/sonnet": { ...CAREFUL["/sonnet"], accepts } };

test.each([
  ["@x402/hono", () => openHono(ONE_PRICE, (stock) => replayableHono(stock))],
  ["@x402/express", () => openExpress(ONE_PRICE, (stock) => replayableExpress(stock))],
  // A Next route, like a Hono application, is a function from a request to its response.
  ["a route like Next's", () => served(openRoute())],
] as const)("Within replayable(), the stock middleware of %s reaches level full", async (_, open) => {
  const url = await open();
  runs = 0;
  const other = { url: `${url}/sonnet`, method: "GET", body: null };
  const report = await holdExam(chain, { resource: { url: `${url}/haiku` }, other });
  expect(failedStatements(report)).toEqual([]);
  expect(outcomes(report)).toMatchObject({ binding: "pass", lost_answer: "pass" });
  expect(report.level).toBe("full");
  // Once per payment, although each was presented several times.
  expect(runs).toBe(3);
});

function openRoute(): (request: Request) => Promise<Response> {
  const app = honoApp(ONE_PRICE, itself);
  const route = replayableNext((request: Request, _: object) => app.fetch(request));
  return (request) => route(request, {});
}

test("Our service passes every check of the exam", async () => {
  const resource = { url: `${scene.service.url}/test/basic`, method: "POST", body: "{}" };
  const other = { url: `${scene.service.url}/test/suite`, method: "POST", body: "{}" };
  const report = await holdExam(chain, { resource, other });
  expect(failedStatements(report)).toEqual([]);
  expect(report.level).toBe("full");
  // One fetch covers the signatures of the offer and of the receipt.
  expect(report.exchanges.filter(({ request }) => request.url.endsWith("/.well-known/did.json"))).toHaveLength(1);
});

const ode = vi.fn(haiku);

async function examine(handler: Handler, contracts = [escrow.address, operator.address]) {
  const { app, account } = await openShop(scene, handler, { escrow: contracts });
  const terms = { account, rpcUrl: chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  app.post("/ode", escrowed({ ...terms, escrow: contracts, store: memoryStore() }, ode));
  const origin = await served(app.fetch);
  const [url, other] = [`${origin}/haiku`, { url: `${origin}/ode`, method: "POST", body: "{}" }];
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 1_000_000n);
  const report = await holdExam(chain, { resource: { url, method: "POST" }, other, payer });
  return { report, payer: payer.address, merchant: account.address };
}

test("A shop with two routes at one price behind an escrow is paid by auth-capture and reaches level full", async () => {
  const { report, payer, merchant } = await examine(haiku);
  expect(failedStatements(report)).toEqual([]);
  expect(outcomes(report)).toMatchObject({
    purchase: "pass",
    replay: "pass",
    binding: "pass",
    forgery: "pass",
    lost_answer: "pass",
  });
  expect(ode).not.toHaveBeenCalled();
  expect(report).toMatchObject({ level: "full", spent: 300_000n, terms: { payTo: merchant } });
  const paid = [...report.settled.values()].map(({ to, value }) => [to, value]);
  expect(paid).toEqual(Array.from({ length: 3 }, () => [COMMERCE_PAYMENTS.collector, 100_000n]));
  // Released to the merchant, less the arbiter's fee.
  await eventually(() => chain.usdcBalance(merchant), 297_000n);
  expect(await chain.usdcBalance(payer)).toBe(700_000n);
});

test("A shop whose goods the arbiter refunds sells nothing and charges nothing", async () => {
  const { report, payer } = await examine((c) => c.json({ error: "out of haiku" }, 500));
  expect(report.level).toBeNull();
  expect(failedStatements(report)).toEqual(["purchase: A payment as quoted is answered with the result (got 500)"]);
  expect(report.settled.size).toBe(1);
  expect([report.spent, await chain.usdcBalance(payer)]).toEqual([0n, 1_000_000n]);
});

test("A shop that sells only by the commerce scheme is examined only for its terms", async () => {
  const { report } = await examine(haiku, [escrow.address]);
  const { terms, ...paid } = outcomes(report);
  expect([terms, new Set(Object.values(paid))]).toEqual(["pass", new Set(["not_applicable"])]);
  expect(report.results[1]?.reason).toBe(
    "an entry has the scheme commerce, but this exam pays under exact and, in version 2, auth-capture",
  );
});

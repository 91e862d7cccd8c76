import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import { serve } from "@hono/node-server";
import { x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware as stockExpress } from "@x402/express";
import { paymentMiddleware as stockHono } from "@x402/hono";
import { Hono, type MiddlewareHandler } from "hono";
import { expect, test } from "vitest";
import { type ExpressMiddleware, replayable as replayableExpress } from "../../../packages/replayable/src/express.ts";
import { replayable as replayableHono } from "../../../packages/replayable/src/index.ts";
import { replayable as replayableNext } from "../../../packages/replayable/src/next.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { holdExam, outcomes, untrue } from "../../support/sellers/held-exam.ts";
import { stockFacilitator } from "../../support/sellers/stock-facilitator.ts";

/** What these tests use of Express, which comes without types. */
interface ExpressApp extends RequestListener {
  use(handler: unknown): void;
  get(path: string, handler: (request: unknown, response: { json(value: unknown): void }) => void): void;
}
const express: () => ExpressApp = createRequire(import.meta.url)("express");

const chain = await forFile(startTestChain());
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

/** Counts how often a handler ran. */
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

/** As a careful seller declares them: for every method, at prices of their own. */
const CAREFUL = {
  "/haiku": { accepts, description: "a haiku" },
  "/sonnet": { accepts: { ...accepts, price: "$0.0015" }, description: "a sonnet" },
};

/** HEAD reaches the handler of GET, but not the middleware's rule for GET. */
const FREE_HEAD = "terms: HEAD is refused or quoted the same, and answered 200";

test.each(STOCK)("the stock middleware of %s sells one payment at another route", async (_, open) => {
  const url = await open();
  const other = { url: `${url}/sonnet`, method: "GET", body: null };
  const report = await holdExam(chain, { resource: { url: `${url}/haiku` }, other });
  expect(untrue(report)).toEqual([
    FREE_HEAD,
    `binding: A payment for ${url}/haiku is refused at ${other.url}, and got 200`,
    "binding: Nothing is charged there",
  ]);
  expect(outcomes(report)).toMatchObject({ purchase: "pass", replay: "pass", forgery: "pass", caching: "pass" });
  expect(report.level).toBeNull();
});

test.each(STOCK)("the stock middleware of %s keeps no answer for who lost it", async (_, open) => {
  const url = await open();
  runs = 0;
  const report = await holdExam(chain, { resource: { url: `${url}/haiku` } });
  expect(untrue(report)).toEqual([
    FREE_HEAD,
    "lost_answer: The same payment brings the answer that was lost, and got 402",
    "lost_answer: Nobody is charged without a result",
  ]);
  expect(outcomes(report)).toMatchObject({ binding: "not_applicable" });
  // For HEAD, and for each copy of a payment that had not settled when it came in.
  expect(runs).toBeGreaterThan(4);
});

test.each(STOCK)("a careful seller with the stock middleware of %s reaches the level safe", async (_, open) => {
  const url = await open(CAREFUL);
  const report = await holdExam(chain, {
    resource: { url: `${url}/haiku` },
    other: { url: `${url}/sonnet`, method: "GET", body: null },
  });
  expect(untrue(report)).toEqual([
    "lost_answer: The same payment brings the answer that was lost, and got 402",
    "lost_answer: Nobody is charged without a result",
  ]);
  expect(report.level).toBe("safe");
});

/** Two routes for every method at one price: a payment for one could buy the other. */
const ONE_PRICE = { "/haiku": CAREFUL["/haiku"], "/sonnet": { ...CAREFUL["/sonnet"], accepts } };

test.each([
  ["@x402/hono", () => openHono(ONE_PRICE, (stock) => replayableHono(stock))],
  ["@x402/express", () => openExpress(ONE_PRICE, (stock) => replayableExpress(stock))],
  // A route of Next is a function from a request to its response, as an application of Hono is.
  ["a route like Next's", () => served(openRoute())],
] as const)("the stock middleware of %s reaches the level full within replayable()", async (_, open) => {
  const url = await open();
  runs = 0;
  const other = { url: `${url}/sonnet`, method: "GET", body: null };
  const report = await holdExam(chain, { resource: { url: `${url}/haiku` }, other });
  expect(untrue(report)).toEqual([]);
  expect(outcomes(report)).toMatchObject({ binding: "pass", lost_answer: "pass" });
  expect(report.level).toBe("full");
  // Once for each of the three payments, however often it was presented.
  expect(runs).toBe(3);
});

function openRoute(): (request: Request) => Promise<Response> {
  const app = honoApp(ONE_PRICE, itself);
  const route = replayableNext((request: Request, _: object) => app.fetch(request));
  return (request) => route(request, {});
}

import type { RequestListener, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { getRequestListener } from "@hono/node-server";
import { x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware as stockExpress } from "@x402/express";
import { paymentMiddleware as stockHono } from "@x402/hono";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { setCookie } from "hono/cookie";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { type ExpressMiddleware, replayable as replayableExpress } from "../../../packages/replayable/src/express.ts";
import {
  type AnswerStore,
  memoryAnswers,
  type ReplayableOptions,
  replayable,
} from "../../../packages/replayable/src/index.ts";
import { asQuoted, numbered, signed } from "../../../packages/seller-check/src/exam/payment.ts";
import { choose, readQuotes } from "../../../packages/seller-check/src/exam/terms.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { stockFacilitator } from "../../support/sellers/stock-facilitator.ts";

const chain = await forFile(startTestChain());
const payTo = "0x00000000000000000000000000000000000c0ffe";
const accepts = { scheme: "exact", price: "$0.001", network: "eip155:8453", payTo } as const;
const ROUTES = { "/haiku": { accepts, description: "a haiku" } };
const server = new x402ResourceServer(stockFacilitator(chain)).register("eip155:8453", new ExactEvmScheme());
const SHOP = "http://shop.test";

interface Shop {
  readonly url: string;
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>;
}

/** Echoes the body with the number of the run. */
function openHono(options: ReplayableOptions = {}) {
  const app = new Hono();
  const handler = vi.fn(async (body: string) => ({ body, run: handler.mock.calls.length }));
  app.use(replayable(stockHono(ROUTES, server), { store: memoryAnswers(), ...options }));
  app.all("/haiku", async (c) => c.json(await handler(await c.req.text()), 200, { "set-cookie": "seen=1" }));
  return { url: SHOP, fetch: async (url: string, init?: RequestInit) => app.fetch(new Request(url, init)), handler };
}

interface ExpressApp extends RequestListener {
  use(...handlers: unknown[]): void;
  all(path: string, handler: (request: { body: unknown }, response: { json(value: unknown): void }) => void): void;
}
const express: (() => ExpressApp) & { json: () => unknown } = createRequire(import.meta.url)("express");

/** Parses JSON before or after the middleware. */
async function openExpress(parser: "before" | "after") {
  const app = express();
  let runs = 0;
  const stock = replayableExpress(stockExpress(ROUTES, server) as ExpressMiddleware, { store: memoryAnswers() });
  app.use(...(parser === "before" ? [express.json(), stock] : [stock, express.json()]));
  app.all("/haiku", ({ body }, response) => response.json({ body: JSON.stringify(body), run: ++runs }));
  return openServer(app);
}

const openServer = async (listener: RequestListener): Promise<Shop> => ({
  url: (await forFile(serveHttp(listener))).url,
  fetch,
});

/** Shops whose other middleware hooks into the response. Each run sets its own cookie and id. */
const BESIDE: readonly (readonly [string, () => Promise<Shop>])[] = [
  [
    "Express, express-session and compression before replayable",
    async () => {
      const app = express();
      const require = createRequire(import.meta.url);
      app.use(
        require("express-session")({ secret: "s", resave: false, saveUninitialized: true }),
        require("compression")(),
        hung,
        replayableExpress(stockExpress(ROUTES, server) as ExpressMiddleware, { store: memoryAnswers() }),
      );
      app.all("/haiku", (_, response) => {
        (response as unknown as ServerResponse).appendHeader("set-cookie", "own=1");
        response.json({ haiku: "An old silent pond / ".repeat(200) });
      });
      return openServer(app);
    },
  ],
  [
    "Hono, compress() before replayable",
    async () => {
      const app = new Hono();
      let runs = 0;
      app.use(compress(), async (c, next) => {
        runs += 1;
        c.header("x-run", String(runs));
        setCookie(c, "early", String(runs));
        await next();
        setCookie(c, "connect.sid", String(runs));
      });
      app.use(replayable(stockHono(ROUTES, server), { store: memoryAnswers() }));
      app.all("/haiku", (c) => {
        setCookie(c, "own", "1");
        return c.json({ haiku: "An old silent pond / ".repeat(200) });
      });
      return openServer(getRequestListener(app.fetch));
    },
  ],
];

let runs = 0;
function hung(_: unknown, response: ServerResponse, next: () => void): void {
  runs += 1;
  response.setHeader("x-run", String(runs));
  response.appendHeader("set-cookie", `early=${runs}`);
  next();
}

test.each(BESIDE)("%s: Headers and encoding of other middleware are intact, also in a replay", async (_, open) => {
  const shop = await open();
  const { header } = await pay(shop);
  const answers = [await buy(shop, header), await buy(shop, header)];
  const names = ({ headers }: Response) => headers.getSetCookie().map((cookie) => cookie.split("=")[0]);
  const early = ({ headers }: Response) => headers.getSetCookie().find((cookie) => cookie.startsWith("early="));
  for (const answer of answers) {
    expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, "gzip"]);
    expect(await answer.json()).toMatchObject({ haiku: expect.stringMatching(/^An old/) });
    expect(names(answer).sort()).toEqual(["connect.sid", "early", "own"]);
    // These headers belong to this request, not to the paid one.
    expect(early(answer)).toMatch(new RegExp(`^early=${answer.headers.get("x-run")}(;|$)`));
  }
  const [first, again] = answers as [Response, Response];
  expect(again.headers.get("x-idempotent-replay")).toBe("true");
  expect(again.headers.get("x-run")).not.toBe(first.headers.get("x-run"));
});

const ASKED = { method: "POST", body: '{"about":"rain"}', headers: { "content-type": "application/json" } };

/** A payment for the shop's quote. */
async function pay({ url, fetch }: Shop, { funds = 1_000_000n } = {}) {
  const quoted = await fetch(`${url}/haiku`, ASKED);
  const answer = {
    status: quoted.status,
    headers: Object.fromEntries(quoted.headers),
    body: new Uint8Array(await quoted.arrayBuffer()),
  };
  const terms = choose(readQuotes(answer), { network: chain.network.id, ceiling: 10_000n }, `${url}/haiku`);
  if (typeof terms === "string") throw new Error(terms);
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, funds);
  const draft = asQuoted(terms, payer.address, Number((await chain.client.getBlock()).timestamp));
  const { headers } = await signed(payer, { terms, ...numbered(terms, draft) });
  return { payer: payer.address, header: headers["payment-signature"] ?? "" };
}

const buy = ({ url, fetch }: Shop, header: string, change: Partial<typeof ASKED> & { path?: string } = {}) => {
  const { path = "/haiku", headers = ASKED.headers, ...rest } = change;
  return fetch(url + path, { ...ASKED, ...rest, headers: { ...headers, "payment-signature": header } });
};

const changed = (header: string, change: (payment: Record<string, never>) => unknown): string =>
  Buffer.from(JSON.stringify(change(JSON.parse(Buffer.from(header, "base64").toString())))).toString("base64");

test("A settled payment returns the stored answer with its headers and is charged once", async () => {
  const shop = openHono();
  const { header, payer } = await pay(shop);
  const first = await buy(shop, header);
  const [again, spelledAnew] = [
    await buy(shop, header),
    await buy(
      shop,
      changed(header, (payment) => payment),
    ),
  ];
  const firstText = await first.text();
  for (const replay of [again, spelledAnew]) {
    expect([replay.status, await replay.text()]).toEqual([200, firstText]);
    expect(replay.headers.get("payment-response")).toBe(first.headers.get("payment-response"));
    expect([replay.headers.getSetCookie(), replay.headers.get("x-idempotent-replay")]).toEqual([["seen=1"], "true"]);
  }
  expect(first.headers.get("x-idempotent-replay")).toBeNull();
  expect(shop.handler).toHaveBeenCalledTimes(1);
  expect(await chain.usdcBalance(payer)).toBe(999_000n);
});

test.each<[string, Parameters<typeof buy>[2]]>([
  ["another body", { body: '{"about":"snow"}' }],
  ["another query", { path: "/haiku?about=snow" }],
  ["another method", { method: "PUT" }],
  ["another buyer's cookie", { headers: { ...ASKED.headers, cookie: "session=other" } as typeof ASKED.headers }],
  ["other credentials", { headers: { ...ASKED.headers, authorization: "Bearer other" } as typeof ASKED.headers }],
])("The stored answer is not returned for %s", async (_, change) => {
  const shop = openHono();
  const { header } = await pay(shop);
  expect((await buy(shop, header)).status).toBe(200);
  const other = await buy(shop, header, change);
  expect([other.status, await other.text()]).toEqual([402, expect.not.stringContaining("rain")]);
});

test.each<[string, (payment: { payload: Record<string, object> }) => unknown]>([
  [
    "with another signature",
    (payment) => ({ ...payment, payload: { ...payment.payload, signature: `0x${"11".repeat(65)}` } }),
  ],
  ["without its signature", (payment) => ({ ...payment, payload: { authorization: payment.payload.authorization } })],
  [
    "with another nonce",
    (payment) => ({
      ...payment,
      payload: {
        ...payment.payload,
        authorization: { ...payment.payload.authorization, nonce: `0x${"22".repeat(32)}` },
      },
    }),
  ],
])("The stored answer is not returned for the authorization %s", async (_, change) => {
  const shop = openHono();
  const { header } = await pay(shop);
  expect((await buy(shop, header)).status).toBe(200);
  const forged = await buy(shop, changed(header, change as never));
  expect([forged.ok, await forged.text()]).toEqual([false, expect.not.stringContaining("rain")]);
});

test("A payment that does not settle stores no answer, and each attempt is judged again", async () => {
  const shop = openHono();
  const { header, payer } = await pay(shop, { funds: 10n });
  expect((await buy(shop, header)).status).toBe(402);
  await chain.fund(payer, 1_000n);
  const [paid, again] = [await buy(shop, header), await buy(shop, header)];
  expect([paid.status, again.status]).toEqual([200, 200]);
  expect(await again.text()).toBe(await paid.text());
});

test("Copies wait for the first request, and the handler runs once", async () => {
  const shop = openHono();
  const { header } = await pay(shop);
  const copies = await Promise.all(Array.from({ length: 10 }, () => buy(shop, header)));
  expect(new Set(await Promise.all(copies.map((copy) => copy.text()))).size).toBe(1);
  expect(copies.filter((copy) => copy.headers.get("x-idempotent-replay") === "true")).toHaveLength(9);
  expect(shop.handler).toHaveBeenCalledTimes(1);
});

test("An unreadable store charges nothing, and an unwritable one costs only the replay", async () => {
  const broken = { get: () => Promise.reject(new Error("down")), set: () => Promise.reject(new Error("down")) };
  const log = vi.fn();
  const [unreadable, unwritable] = [
    openHono({ store: broken, log }),
    openHono({ store: { ...broken, get: async () => null }, log }),
  ];
  const { header, payer } = await pay(unreadable);
  const refused = await buy(unreadable, header);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await chain.usdcBalance(payer)).toBe(1_000_000n);
  expect((await buy(unwritable, header)).status).toBe(200);
  expect(log).toHaveBeenCalledTimes(2);
});

test("A payment that names another path gets a quote for this one and is not charged", async () => {
  const shop = openHono({ isFor: (resource) => new URL(resource).pathname === "/sonnet" });
  const { header, payer } = await pay(shop);
  expect((await buy(shop, header)).status).toBe(402);
  expect(shop.handler).not.toHaveBeenCalled();
  expect(await chain.usdcBalance(payer)).toBe(1_000_000n);
});

test.each(["before", "after"] as const)(
  "Express, with its parser %s the middleware: The handler gets the body, and another body gets no stored answer",
  async (parser) => {
    const shop = await openExpress(parser);
    const { header } = await pay(shop);
    const [first, again] = [await buy(shop, header), await buy(shop, header)];
    expect(await first.json()).toEqual({ body: ASKED.body, run: 1 });
    expect(again.headers.get("x-idempotent-replay")).toBe("true");
    expect(await again.json()).toEqual({ body: ASKED.body, run: 1 });
    expect((await buy(shop, header, { body: '{"about":"snow"}' })).status).toBe(402);
  },
);

test("A large body reaches its handler, and its payment is not replayed", async () => {
  const shop = await openExpress("after");
  const { header } = await pay(shop);
  const body = JSON.stringify({ about: "x".repeat(90_000) });
  expect(await (await buy(shop, header, { body })).json()).toMatchObject({ body });
  const hono = openHono();
  const other = await pay(hono);
  const huge = "x".repeat(1024 * 1024 + 1);
  expect((await buy(hono, other.header, { body: huge })).status).toBe(200);
  expect((await buy(hono, other.header, { body: huge })).status).toBe(402);
});

const answer = (bytes: number) => ({ status: 200, headers: [], body: new Uint8Array(bytes) });
const stored = async (store: AnswerStore, keys: readonly string[]) =>
  (await Promise.all(keys.map((key) => store.get(key)))).map((found) => found?.body.length ?? null);

test("The memory drops its oldest answers above its limits, and every answer after its time", async () => {
  const store = memoryAnswers({ answers: 2, bytes: 100 });
  for (const key of ["a", "b", "c"]) await store.set(key, answer(10), 60_000);
  expect(await stored(store, ["a", "b", "c"])).toEqual([null, 10, 10]);
  await store.set("d", answer(95), 60_000);
  expect(await stored(store, ["b", "c", "d"])).toEqual([null, null, 95]);
  await store.set("e", answer(101), 60_000);
  expect(await stored(store, ["d", "e"])).toEqual([null, null]);
  await store.set("f", answer(1), 0);
  expect(await stored(store, ["f"])).toEqual([null]);
});

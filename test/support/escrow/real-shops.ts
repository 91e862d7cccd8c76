import { once } from "node:events";
import { createServer, request as httpRequest, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  type ExpressRequest,
  type ExpressResponse,
  escrowed as inExpress,
} from "../../../packages/escrow/src/express.ts";
import { escrowed, memoryStore, type SellerOptions } from "../../../packages/escrow/src/index.ts";
import { escrowed as inNext } from "../../../packages/escrow/src/next.ts";
import { forFile } from "../for-file.ts";
import type { SaleScene } from "./sale.ts";

/** The part of Express that these tests use. Express has no types. */
export interface ExpressApp extends RequestListener {
  use(...handlers: unknown[]): void;
  post(path: string, ...handlers: unknown[]): void;
  get(path: string, ...handlers: unknown[]): void;
}
export interface HandlerResponse extends ExpressResponse {
  json(value: unknown): void;
  send(body: unknown): void;
  sendFile(path: string): void;
  status(code: number): this;
  type(name: string): this;
  cookie(name: string, value: string): this;
}
export type ExpressHandler = (
  request: ExpressRequest & { body: { lines?: number }; ip: string },
  response: HandlerResponse,
  next: (error?: unknown) => void,
) => unknown;
export const express: { (): ExpressApp; json(): unknown } = createRequire(import.meta.url)("express");

/** `express-session`, in memory, and `compression`, as examples of middleware that hooks into the response. */
export const expressSession = (): unknown =>
  createRequire(import.meta.url)("express-session")({ secret: "s", resave: false, saveUninitialized: false });
export const compression: () => unknown = createRequire(import.meta.url)("compression");

/** A listening server. */
export interface RealShop {
  readonly fetch: typeof fetch;
  readonly url: string;
  /** The number of its connections that have ended. */
  readonly hangUps: () => number;
}

export async function listen(listener: RequestListener): Promise<RealShop> {
  let ended = 0;
  const server = createServer(listener);
  server.on("connection", (socket) => socket.on("close", () => (ended += 1)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await forFile({
    stop() {
      server.closeAllConnections();
      server.close();
    },
  });
  return { fetch, hangUps: () => ended, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/haiku` };
}

/** The options of a new merchant with gas. */
export async function merchantIn({
  chain,
  arbiter,
}: SaleScene): Promise<SellerOptions & { readonly account: LocalAccount }> {
  const account = privateKeyToAccount(generatePrivateKey());
  await chain.setBalance(account.address, 10n ** 18n);
  const common = { account, rpcUrl: chain.rpcUrl, price: "0.10", arbiterUrl: arbiter.url };
  return { ...common, store: memoryStore(), log: () => undefined };
}

/** Reads every request's signal, as middleware may, because Hono aborts only a signal that was read. */
const watched = (serve: (request: Request) => Response | Promise<Response>): RequestListener =>
  getRequestListener((request) => {
    void request.signal;
    return serve(request);
  });

/** Opens a server that sells the responses of `answer` with the middleware for one framework. */
export type OpenShop = (
  options: SellerOptions,
  answer: (request: Request) => Response | Promise<Response>,
) => Promise<RealShop>;

export const FRAMEWORKS: readonly (readonly [string, OpenShop])[] = [
  [
    "Hono",
    (options, answer) => {
      const app = new Hono().post(
        "/haiku",
        escrowed(options, (c) => answer(c.req.raw)),
      );
      return listen(watched(app.fetch));
    },
  ],
  [
    "Hono, with the next handler",
    (options, answer) => {
      const app = new Hono();
      app.use("/haiku", escrowed(options));
      app.post("/haiku", (c) => answer(c.req.raw));
      return listen(watched(app.fetch));
    },
  ],
  [
    "Next",
    (options, answer) => {
      const POST = inNext(options, (request) => answer(request));
      return listen(watched((request) => POST(request, {})));
    },
  ],
  [
    "Express",
    (options, answer) => {
      const app = express();
      app.post("/haiku", inExpress(options), async (request: ExpressRequest, response: HandlerResponse) => {
        const made = await answer(new Request("http://shop.example/haiku", { method: request.method ?? "POST" }));
        response.status(made.status);
        for (const [name, value] of made.headers) response.appendHeader(name, value);
        response.end(Buffer.from(await made.arrayBuffer()));
      });
      return listen(app);
    },
  ],
];

/** Pays as a buyer who hangs up once `until` resolves. */
export async function payAndLeave(
  { url, hangUps }: RealShop,
  header: string,
  { until, body = "" }: { readonly until: () => Promise<void>; readonly body?: string },
): Promise<void> {
  const before = hangUps();
  const headers = { "payment-signature": header, "content-type": "application/json", connection: "close" };
  const leaving = httpRequest(url, { method: "POST", headers });
  leaving.on("error", () => undefined);
  leaving.end(body);
  await until();
  leaving.destroy();
  while (hangUps() === before) await new Promise((resolve) => setImmediate(resolve));
}

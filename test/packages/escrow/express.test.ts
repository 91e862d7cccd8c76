import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import {
  type ExpressOptions,
  type ExpressRequest,
  type ExpressResponse,
  escrowed,
} from "../../../packages/escrow/src/express.ts";
import { memoryStore } from "../../../packages/escrow/src/index.ts";
import { buyFrom, newBuyer, type Pays, pay, signFor } from "../../support/escrow/purchase.ts";
import { holdsBy, startSaleScene, statusOf } from "../../support/escrow/sale-scene.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

/** What these tests use of Express, which comes without types. */
interface ExpressApp extends RequestListener {
  use(...handlers: unknown[]): void;
  post(path: string, ...handlers: unknown[]): void;
  get(path: string, ...handlers: unknown[]): void;
}
interface HandlerResponse extends ExpressResponse {
  json(value: unknown): void;
  send(body: unknown): void;
  status(code: number): this;
  type(name: string): this;
}
const express: { (): ExpressApp; json(): unknown } = createRequire(import.meta.url)("express");

const scene = await forFile(startSaleScene());
const account = privateKeyToAccount(generatePrivateKey());
await scene.chain.setBalance(account.address, 10n ** 18n);
const buyer = () => newBuyer(scene.chain);
const overHttp = { fetch };

type Handler = (
  request: ExpressRequest & { body: { lines?: number } },
  response: HandlerResponse,
  next: (error?: unknown) => void,
) => unknown;

/** A real Express server that sells `POST /haiku`. Returns its URL. */
async function openExpress(
  handler: Handler,
  options: Partial<ExpressOptions<ExpressRequest & { body: { lines?: number } }>> = {},
): Promise<string> {
  const common = { account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  const app = express();
  app.use((_request: unknown, response: HandlerResponse, next: () => void) => {
    response.setHeader("x-outer", "stays");
    next();
  });
  app.use(express.json());
  const selling = escrowed({ ...common, store: memoryStore(), log: () => undefined, ...options });
  app.post("/haiku", selling, handler);
  app.get("/haiku", selling, handler);
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  await forFile({
    stop() {
      server.closeAllConnections();
      server.close();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/haiku`;
}

const sold = async (handler: Handler, pays: Pays = "commerce") => {
  const url = await openExpress(handler);
  const bought = await buyFrom(overHttp, await buyer(), { url, pays });
  return { ...bought, url, text: await bought.response.text() };
};

test.each<Pays>(["auth-capture", "commerce"])(
  "%s: response.json is held back, sold and released; a retry replays it",
  async (pays) => {
    const handler = vi.fn<Handler>((_request, response) => response.status(201).json({ haiku: "An old silent pond" }));
    const { response, text, decision, header, id, url } = await sold(handler, pays);
    expect([response.status, JSON.parse(text), decision]).toEqual([201, { haiku: "An old silent pond" }, "release"]);
    expect(response.headers.get("x-outer")).toBe("stays");
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const again = await pay(overHttp, header, url);
    expect([again.status, await again.text(), again.headers.get("x-idempotent-replay")]).toEqual([201, text, "true"]);
    expect(handler).toHaveBeenCalledTimes(1);
    expect(handler.mock.calls[0]?.[1].locals.escrowPaymentId).toBe(id);
    await eventually(() => statusOf(scene, id, pays), "released" as const);
  },
);

test.each<[string, Handler, string]>([
  [
    "write and end",
    (_request, response) => {
      response.writeHead(200, { "Content-Type": "text/plain", "Set-Cookie": ["a=1", "b=2"] });
      response.write("An old ");
      response.write(Buffer.from("silent "));
      response.end("pond", "utf8");
    },
    "An old silent pond",
  ],
  [
    "a stream",
    (_request, response) => pipeline(Readable.from(["An old ", "silent pond"]), response.type("txt")),
    "An old silent pond",
  ],
  ["send of bytes", (_request, response) => response.type("png").send(Buffer.from([1, 2, 255])), "\u0001\u0002\ufffd"],
])("%s", async (_, handler, body) => {
  const { response, text, decision } = await sold(handler);
  expect([response.status, text, decision]).toEqual([200, body, "release"]);
  if (_ === "write and end") expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
});

test.each<[string, Handler, number]>([
  ["next(error)", (_request, _response, next) => next(Object.assign(new Error("no ink"), { expose: false })), 500],
  ["a rejection", async () => Promise.reject(new Error("no ink")), 500],
  ["no body", (_request, response) => response.status(204).end(), 204],
  ["too much", (_request, response) => response.send("x".repeat(256 * 1024 + 1)), 500],
])("%s is refunded", async (_, handler, status) => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { response, decision } = await sold(handler).finally(() => silent.mockRestore());
  expect([response.status, decision]).toEqual([status, "refund"]);
});

test("a body is checked before anything is held", async () => {
  const url = await openExpress((request, response) => response.json(request.body), {
    validate: ({ body }) => (body?.lines === 3 ? null : "A haiku has 3 lines."),
  });
  const post = (lines: number, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ lines }),
    });
  expect((await post(4)).status).toBe(422);
  const payer = await buyer();
  const header = await signFor(
    { fetch: ((_url, init) => post(3, Object.fromEntries(new Headers(init?.headers)))) as typeof fetch },
    payer,
    url,
  );
  expect((await post(4, { "payment-signature": header })).status).toBe(422);
  expect(await holdsBy(scene, payer.address)).toBe(0);
  const good = await post(3, { "payment-signature": header });
  expect([good.status, await good.json()]).toEqual([200, { lines: 3 }]);
});

test("a buyer that hangs up finds the response with the same header, made once", async () => {
  const { promise: hungUp, resolve: finish } = Promise.withResolvers<void>();
  const handler = vi.fn<Handler>(async (_request, response) => {
    await hungUp;
    await pipeline(Readable.from(["An old silent pond"]), response.type("txt"));
  });
  const url = await openExpress(handler);
  const header = await signFor(overHttp, await buyer(), url);
  const leaving = httpRequest(url, { method: "POST", headers: { "payment-signature": header } });
  leaving.on("error", () => undefined);
  leaving.end();
  await eventually(() => handler.mock.calls.length, 1);
  const socket = handler.mock.calls[0]?.[0].socket;
  leaving.destroy();
  await eventually(() => socket?.destroyed, true);
  finish();
  const again = await pay(overHttp, header, url);
  expect([again.status, await again.text()]).toEqual([200, "An old silent pond"]);
  expect(again.headers.get("x-escrow-decision")).toBe("release");
  expect(handler).toHaveBeenCalledTimes(1);
});

/** `fetch` would say that it wants no cached answer, and no condition would hold. */
async function askPlainly(url: string, { method, headers }: { method: string; headers: Record<string, string> }) {
  const [response] = (await once(httpRequest(url, { method, headers }).end(), "response")) as [IncomingMessage];
  return { status: response.statusCode, decision: response.headers["x-escrow-decision"], text: await text(response) };
}

test("a buyer who asks on a condition, or for a part, or with HEAD, gets and pays all or nothing", async () => {
  const url = await openExpress((_request, response) => response.json({ haiku: "An old silent pond" }));
  const payer = await buyer();
  const header = await signFor(overHttp, payer, { url, pays: "commerce" });
  const headers = { "payment-signature": header, "if-none-match": "*", range: "bytes=0-0" };
  expect((await askPlainly(url, { method: "HEAD", headers })).status).toBe(400);
  expect(await holdsBy(scene, payer.address)).toBe(0);
  expect(await askPlainly(url, { method: "GET", headers })).toEqual({
    ...{ status: 200, decision: "release" },
    text: '{"haiku":"An old silent pond"}',
  });
});

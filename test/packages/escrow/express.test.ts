import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { expect, test, vi } from "vitest";
import { type ExpressOptions, type ExpressRequest, escrowed } from "../../../packages/escrow/src/express.ts";
import {
  compression,
  type ExpressApp,
  express,
  expressSession,
  type ExpressHandler as Handler,
  type HandlerResponse,
  listen,
  merchantIn,
} from "../../support/escrow/real-shops.ts";
import {
  buyFrom,
  holdsBy,
  newBuyer,
  type Pays,
  pay,
  signFor,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const buyer = () => newBuyer(scene.chain);
const overHttp = { fetch };

/** The middleware before and after ours in an application. */
interface Around {
  readonly before?: (app: ExpressApp) => void;
  readonly between?: readonly unknown[];
  readonly options?: Partial<ExpressOptions<ExpressRequest & { body: { lines?: number } }>>;
}

/** A real Express server that sells `POST /haiku`. Returns its URL. */
async function openExpress(handler: Handler, { before, between = [], options = {} }: Around = {}): Promise<string> {
  const app = express();
  app.use((_request: unknown, response: HandlerResponse, next: () => void) => {
    response.setHeader("x-outer", "stays");
    next();
  });
  before?.(app);
  app.use(express.json());
  const selling = escrowed({ ...(await merchantIn(scene)), ...options });
  app.post("/haiku", selling, ...between, handler);
  app.get("/haiku", selling, ...between, handler);
  return (await listen(app)).url;
}

const sold = async (handler: Handler, pays: Pays = "commerce", around: Around = {}) => {
  const url = await openExpress(handler, around);
  const bought = await buyFrom(overHttp, await buyer(), { url, pays });
  return { ...bought, url, text: await bought.response.text() };
};

test.each<Pays>(["auth-capture", "commerce"])(
  "%s: response.json is held back, sold, and released, and a retry replays it",
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
])("A response by %s is sold", async (_, handler, body) => {
  const { response, text, decision } = await sold(handler);
  expect([response.status, text, decision]).toEqual([200, body, "release"]);
  if (_ === "write and end") expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
});

test.each<[string, Handler]>([
  ["next(error)", (_request, _response, next) => next(Object.assign(new Error("no ink"), { expose: false }))],
  ["an invalid status", (_request, response) => response.writeHead(600).end("An old silent pond")],
  ["a failing stream", (_request, response) => pipeline(failing(), response.type("txt"))],
  ["a stream that the handler destroys", (_request, response) => response.type("txt").destroy()],
  ["too much", (_request, response) => response.send("x".repeat(256 * 1024 + 1))],
])("A handler with %s is refunded", async (_, handler) => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { response, decision } = await sold(handler).finally(() => silent.mockRestore());
  expect([response.status, decision]).toEqual([500, "refund"]);
});

test("A body is checked before anything is held", async () => {
  const url = await openExpress((request, response) => response.json(request.body), {
    options: { validate: ({ body }) => (body?.lines === 3 ? null : "A haiku has 3 lines.") },
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

/** Goods, followed by a failure. */
async function* failing() {
  yield "An old silent pond";
  throw new Error("no ink");
}

test.each<[string, Handler]>([
  ["after a refusal", (_request, response) => void response.status(400).json({ error: "A haiku has 3 lines." })],
  ["after a failure", (_request, _response, next) => next(Object.assign(new Error("no ink"), { expose: false }))],
])("Goods that are sent %s, in a second response, never reach the buyer", async (_, first) => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { response, text, decision, header, url } = await sold((request, response, next) => {
    first(request, response, next);
    setImmediate(() => {
      response.write("An old silent pond");
      response.end("An old silent pond");
      expect(() => response.json({ haiku: "An old silent pond" })).toThrow(/headers/);
    });
  });
  silent.mockRestore();
  expect([response.status >= 400, decision]).toEqual([true, "refund"]);
  expect(text + (await (await pay(overHttp, header, url)).text())).not.toContain("pond");
});

test("Goods that were partly sent before a failure do not appear in the error response", async () => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { response, text, decision } = await sold((_request, response, next) => {
    response.type("txt").write("An old silent pond");
    next(new Error("no ink"));
  });
  silent.mockRestore();
  expect([response.status, decision, JSON.parse(text)]).toEqual([
    500,
    "refund",
    { error: "The merchant's response broke off." },
  ]);
});

/** Sets another cookie for each visit. */
const counted = () => {
  let visits = 0;
  return (_request: unknown, response: HandlerResponse, next: () => void) => {
    visits += 1;
    response.appendHeader("set-cookie", `visit=${visits}`);
    next();
  };
};
const around = () => ({ before: (app: ExpressApp) => app.use(counted()) });

test("Headers of earlier middleware are on every response, and a replay has its own", async () => {
  const { response, header, url, text } = await sold(
    (_request, response) => response.cookie("haiku", "pond").json({ haiku: "An old silent pond" }),
    "commerce",
    around(),
  );
  expect(response.headers.getSetCookie()).toEqual(["visit=2", "haiku=pond; Path=/"]);
  const again = await pay(overHttp, header, url);
  expect(again.headers.getSetCookie()).toEqual(["visit=3", "haiku=pond; Path=/"]);
  expect([again.headers.get("x-outer"), await again.text()]).toEqual(["stays", text]);
});

test("A withheld response has the headers of other middleware and none of the handler's", async () => {
  const { response } = await sold(
    (_request, response) => {
      response.setHeader("x-haiku", "An old silent pond");
      response.statusMessage = "An old silent pond";
      response.cookie("haiku", "pond").json({ error: "Basho" });
    },
    "commerce",
    around(),
  );
  expect([response.status, response.statusText, response.headers.get("x-haiku")]).toEqual([
    ...[500, "Internal Server Error", null],
  ]);
  expect(response.headers.getSetCookie()).toEqual(["visit=2"]);
  expect(response.headers.get("x-outer")).toBe("stays");
});

const visits = async (request: ExpressRequest, response: HandlerResponse) => {
  const { session } = request as ExpressRequest & { session: { visits?: number } };
  session.visits = (session.visits ?? 0) + 1;
  response.json({ visits: session.visits, haiku: "An old silent pond / ".repeat(200) });
};

test.each(["before", "between"] as const)(
  "express-session and compression %s the middleware and the handler work as they do without the middleware",
  async (place) => {
    const stock = [expressSession(), compression()];
    const around = place === "before" ? { before: (app: ExpressApp) => app.use(...stock) } : { between: stock };
    const { response, text, decision, header, url, id } = await sold(visits, "commerce", around);
    expect([response.status, response.headers.get("content-encoding"), decision]).toEqual([200, "gzip", "release"]);
    expect(JSON.parse(text)).toMatchObject({ visits: 1 });
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^connect\.sid=/);
    const again = await pay(overHttp, header, url);
    expect([await again.text(), again.headers.get("content-encoding")]).toEqual([text, "gzip"]);
    // The buyer's next purchase has the same session.
    const withCookie: typeof fetch = (input, init) => {
      const request = new Request(input, init);
      request.headers.set("cookie", cookie.split(";")[0] ?? "");
      return fetch(request);
    };
    const next = await buyFrom({ fetch: withCookie }, await buyer(), { url });
    expect(await next.response.json()).toMatchObject({ visits: 2 });
    await eventually(() => statusOf(scene, id), "released" as const);
  },
);

/** Sends a request without `fetch`, which would add `Cache-Control: no-cache` and so disable the conditions. */
async function askPlainly(url: string, { method, headers }: { method: string; headers: Record<string, string> }) {
  const [response] = (await once(httpRequest(url, { method, headers }).end(), "response")) as [IncomingMessage];
  return { status: response.statusCode, decision: response.headers["x-escrow-decision"], text: await text(response) };
}

test("A buyer who sends conditions, a range, or HEAD gets and pays for the whole response or nothing", async () => {
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

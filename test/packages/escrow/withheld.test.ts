import { mkdtempSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { gzipSync } from "node:zlib";
import { decodePaymentResponseHeader } from "@x402/core/http";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { createClient, http } from "viem";
import { beforeEach, expect, test, vi } from "vitest";
import { escrowed as inExpress } from "../../../packages/escrow/src/express.ts";
import { escrowed, sendFrom } from "../../../packages/escrow/src/index.ts";
import {
  type ExpressHandler,
  express,
  FRAMEWORKS,
  listen,
  merchantIn,
  payAndLeave,
  type RealShop,
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
beforeEach(() => scene.arbiter.become("fair"));

const HAIKU = "An old silent pond";
const JSON_TYPE = { "content-type": "application/json" };
const GZIP = { ...JSON_TYPE, "content-encoding": "gzip" };

/** Responses that a buyer might induce a handler to give. They carry all of the goods, and the arbiter refunds them. */
const SHAPED: readonly (readonly [string, () => Response])[] = [
  ["a field that is called error", () => Response.json({ haiku: HAIKU, error: "Basho" })],
  [
    "an error below gzip",
    () =>
      new Response(gzipSync(JSON.stringify({ haiku: HAIKU, error: 1 })), {
        headers: GZIP,
      }),
  ],
  ["no body", () => new Response(null, { status: 204, headers: { "set-cookie": `haiku=${HAIKU}` } })],
  ["a redirect without a body", () => new Response(null, { status: 303, headers: { location: `/?haiku=${HAIKU}` } })],
];

/** All that a client sees of a response. */
const seenOf = async (response: Response): Promise<string> =>
  JSON.stringify([...response.headers]) + Buffer.from(await response.arrayBuffer()).toString("latin1");

test.each(
  FRAMEWORKS.flatMap(([framework, open]) => SHAPED.map(([shape, answer]) => ({ framework, open, shape, answer }))),
)("$framework: Goods with $shape are refunded, so they never reach the buyer", async ({ open, answer, framework }) => {
  let calls = 0;
  const shop = await open(await merchantIn(scene), () => {
    calls += 1;
    return answer();
  });
  const pays: Pays = framework === "Next" ? "auth-capture" : "commerce";
  const header = await signFor(shop, await newBuyer(scene.chain), { url: shop.url, pays });
  for (const isReplay of [false, true]) {
    const response = await shop.fetch(shop.url, {
      method: "POST",
      headers: { "payment-signature": header, "accept-encoding": "identity" },
      redirect: "manual",
    });
    const { status, headers } = response;
    const id = headers.get("x-escrow-payment") as `0x${string}`;
    expect([status, headers.get("x-escrow-decision")]).toEqual([500, "refund"]);
    expect(headers.get("x-idempotent-replay")).toBe(isReplay ? "true" : null);
    expect(decodePaymentResponseHeader(headers.get("payment-response") ?? "").extensions).toEqual({});
    const record = `${scene.arbiter.url}/escrow/evaluation/${id}`;
    expect(await response.clone().json()).toEqual({
      error: expect.stringMatching(/^The arbiter refunds payment 0x\w{64} in full, so the merchant's response/),
      payment_id: id,
      decision: "refund",
      withheld_status: answer().status,
      record,
    });
    const seen = await seenOf(response);
    expect(seen.includes(HAIKU) || seen.includes(encodeURI(HAIKU))).toBe(false);
    expect(((await (await fetch(record)).json()) as { decision: string }).decision).toBe("refund");
    await eventually(() => statusOf(scene, id, pays), "refunded" as const);
  }
  expect(calls).toBe(1);
});

test.each([
  ["goods that it would refund, and does once it decides", { haiku: HAIKU, error: "Basho" }, [500, "refund"], String],
  ["a compressed response, and releases it once it has decoded it", { haiku: HAIKU }, [200, "release"], gzipSync],
] as const)("While the arbiter is unreachable, the kit withholds %s", async (...[_, body, decided, coded]) => {
  const answer = () => new Response(coded(JSON.stringify(body)), { headers: coded === gzipSync ? GZIP : JSON_TYPE });
  const [, open] = FRAMEWORKS[0] ?? expect.fail("There is no framework.");
  const shop = await open(await merchantIn(scene), answer);
  await shop.fetch(shop.url, { method: "POST" });
  scene.arbiter.become("down");
  const header = await signFor(shop, await newBuyer(scene.chain), shop.url);
  const undecided = await pay(shop, header, shop.url);
  expect([undecided.status, await undecided.json()]).toEqual([
    503,
    { error: expect.stringMatching(/has not decided .* send the same header again/) },
  ]);
  scene.arbiter.become("fair");
  const sold = await pay(shop, header, shop.url);
  expect([sold.status, sold.headers.get("x-escrow-decision")]).toEqual(decided);
});

test("Hono: Headers of earlier middleware are on every response, and a replay has its own", async () => {
  let visits = 0;
  let answer = () => Response.json({ haiku: HAIKU }, { headers: { "set-cookie": "inner=1" } });
  const app = new Hono();
  const origin = "https://app.example";
  app.use(cors({ origin, exposeHeaders: ["X-Shop"] }), async (c, next) => {
    visits += 1;
    c.header("x-visit", String(visits));
    c.header("set-cookie", `outer=${visits}`, { append: true });
    await next();
  });
  app.use("/haiku", escrowed(await merchantIn(scene)));
  app.post("/haiku", () => answer());
  const fetched = (request: Request) => {
    request.headers.set("origin", origin);
    return app.fetch(request);
  };
  const shop = { fetch: (async (input, init) => fetched(new Request(input, init))) as typeof fetch };
  const hung = ({ status, headers }: Response) => [
    ...[status, headers.get("x-visit"), headers.getSetCookie()],
    ...["access-control-allow-origin", "access-control-expose-headers"].map((name) => headers.get(name)),
  ];
  const own = [origin, "X-Shop"];
  const { response, header } = await buyFrom(shop, await newBuyer(scene.chain));
  expect(hung(response)).toEqual([200, "2", expect.arrayContaining(["inner=1", "outer=2"]), ...own]);
  const again = await pay(shop, header);
  expect(hung(again)).toEqual([200, "3", expect.arrayContaining(["inner=1", "outer=3"]), ...own]);
  expect(again.headers.getSetCookie()).toHaveLength(2);
  answer = () => Response.json({ haiku: HAIKU, error: 1 }, { headers: { "set-cookie": "inner=1" } });
  const withheld = await buyFrom(shop, await newBuyer(scene.chain));
  expect(hung(withheld.response)).toEqual([500, "5", ["outer=5"], ...own]);
});

test.each(FRAMEWORKS)(
  "%s: A merchant's own error is the response, and a handler that throws answers 500",
  async (_, open) => {
    const answers = [
      () => Response.json({ error: "no ink" }, { status: 418 }),
      () => {
        throw new Error("no ink");
      },
    ];
    const shop = await open(await merchantIn(scene), () => answers.shift()?.() ?? expect.fail("A third buyer came."));
    const own = await buyFrom(shop, await newBuyer(scene.chain), { url: shop.url });
    expect([own.response.status, await own.response.json(), own.decision]).toEqual([
      418,
      { error: "no ink" },
      "refund",
    ]);
    const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const payer = await newBuyer(scene.chain);
    const thrown = await buyFrom(shop, payer, { url: shop.url }).finally(() => silent.mockRestore());
    expect([thrown.response.status, thrown.decision]).toEqual([500, "refund"]);
    await eventually(() => scene.chain.usdcBalance(payer.address), 1_000_000n);
  },
);

const LONG = JSON.stringify({ lines: 3, words: "frog ".repeat(40_000) });

/** When the buyer hangs up. */
const WHEN = ["while its payment is held", "while the handler works"] as const;

/** A gate that one side awaits and the other opens. */
function gate() {
  const { promise: reached, resolve: arrive } = Promise.withResolvers<void>();
  const { promise: open, resolve: opens } = Promise.withResolvers<void>();
  return {
    reached: () => reached,
    opens,
    async pass(): Promise<void> {
      arrive();
      await open;
    },
  };
}

/** A merchant whose holds, or handlers, wait for their buyer to hang up. */
async function sellerThatWaits(when: (typeof WHEN)[number]) {
  const hangUp = gate();
  const options = await merchantIn(scene);
  const send = sendFrom(createClient({ transport: http(scene.chain.rpcUrl) }), options.account);
  const isHeld = when === "while its payment is held";
  const wait = (isHere: boolean) => (isHere ? hangUp.pass() : Promise.resolve());
  const hold: typeof send = async (request) => {
    await wait(isHeld);
    return send(request);
  };
  return { hangUp, options: { ...options, hold }, works: () => wait(!isHeld) };
}

async function leaveAndReturn(shop: RealShop, hangUp: ReturnType<typeof gate>, body: string) {
  const header = await signFor(shop, await newBuyer(scene.chain), shop.url);
  await payAndLeave(shop, header, { until: hangUp.reached, body });
  hangUp.opens();
  const again = await pay(shop, header, shop.url);
  return { again, decision: again.headers.get("x-escrow-decision"), text: await again.text() };
}

test.each(FRAMEWORKS.slice(0, 3).flatMap(([framework, open]) => WHEN.map((when) => ({ framework, open, when }))))(
  "$framework: A buyer that hangs up $when aborts nothing, and gets the goods with the same header",
  async ({ open, when }) => {
    const { hangUp, options, works } = await sellerThatWaits(when);
    const handler = vi.fn(async (request: Request) => {
      // Work that observes the signal, or the request, as `fetch` would.
      const { signal } = request;
      const forwarded = new Request(request.clone());
      await works();
      signal.throwIfAborted();
      forwarded.signal.throwIfAborted();
      return Response.json({ length: (await request.text()).length });
    });
    const shop = await open(options, handler);
    const { again, decision, text } = await leaveAndReturn(shop, hangUp, LONG);
    expect([again.status, decision, text]).toEqual([200, "release", JSON.stringify({ length: LONG.length })]);
    expect(handler).toHaveBeenCalledTimes(1);
  },
);

const file = join(mkdtempSync(join(tmpdir(), "escrow-")), "haiku.txt");
writeFileSync(file, "An old silent pond ".repeat(5_000));

const EXPRESS: readonly (readonly [string, ExpressHandler, string])[] = [
  [
    "reads its request afterwards",
    async (request, response) => {
      const body = await text(request);
      response.json({ length: body.length });
    },
    JSON.stringify({ length: LONG.length }),
  ],
  ["sends a file", (_request, response) => response.sendFile(file), "An old silent pond ".repeat(5_000)],
  [
    "awaits the end of a stream",
    async (_request, response) => pipeline(Readable.from(["An old ", "silent pond"]), response.type("txt")),
    "An old silent pond",
  ],
];

test.each(EXPRESS.flatMap(([what, handler, body]) => WHEN.map((when) => ({ what, handler, body, when }))))(
  "Express: A buyer that hangs up $when does not disturb a handler that $what",
  async ({ handler, body, when }) => {
    const { hangUp, options, works } = await sellerThatWaits(when);
    const done = vi.fn();
    const handlers = vi.fn<ExpressHandler>(async (request, response, next) => {
      response.on("finish", () => done("finish"));
      await works();
      await handler(request, response, next);
    });
    const app = express();
    app.post("/haiku", inExpress(options), handlers);
    const { again, decision, text } = await leaveAndReturn(await listen(app), hangUp, LONG);
    expect([again.status, decision, text]).toEqual([200, "release", body]);
    expect(handlers).toHaveBeenCalledTimes(1);
    await eventually(() => done.mock.calls, [["finish"]]);
  },
);

test.each(WHEN)("Express: A handler cannot detect that its buyer hangs up %s", async (when) => {
  const { hangUp, options, works } = await sellerThatWaits(when);
  const heard: string[] = [];
  const app = express();
  // Middleware that observes the connection, as loggers do.
  const outer = vi.fn();
  app.use((_request: unknown, response: NodeJS.EventEmitter, next: () => void) => {
    response.on("close", outer);
    next();
  });
  const handler = vi.fn<ExpressHandler>(async (request, response) => {
    // A request whose body was read closes in the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    for (const [name, source] of Object.entries({ request, response, socket: request.socket, other: response.socket }))
      for (const event of ["aborted", "close", "error", "end"])
        (source as NodeJS.EventEmitter).on(event, () => heard.push(`${name} ${event}`));
    await works();
    const { ip, body, aborted, socket } = request;
    const { writable, destroyed, closed, writableEnded, writableFinished, errored } = response;
    const seen = [writable, destroyed, closed, writableEnded, writableFinished, errored];
    const sockets = [socket, response.socket, response.connection].map((one) => [
      one?.destroyed,
      one?.writable,
      one?.readable,
    ]);
    response.json({ lines: body.lines, ip, aborted, seen, sockets, address: socket.remoteAddress, heard });
  });
  app.post("/haiku", inExpress(options), express.json(), handler);
  const small = JSON.stringify({ lines: 3 });
  const { again, decision, text } = await leaveAndReturn(await listen(app), hangUp, small);
  expect([again.status, decision]).toEqual([200, "release"]);
  expect(JSON.parse(text)).toEqual({
    ...{ lines: 3, ip: "127.0.0.1", address: "127.0.0.1", aborted: false, heard: [] },
    seen: [true, false, false, false, false, null],
    sockets: Array(3).fill([false, true, true]),
  });
  expect(handler).toHaveBeenCalledTimes(1);
  // Earlier middleware still sees each of three requests end: the unpaid, the lost, and the repeated one.
  await eventually(() => outer.mock.calls.length, 3);
});

test.each(FRAMEWORKS)("%s: A buyer that hangs up in the middle of its request has no hold", async (framework, open) => {
  const options = await merchantIn(scene);
  const logged = vi.fn();
  const handler = vi.fn(() => Response.json({}));
  const shop = await open({ ...options, log: logged }, handler);
  const payer = await newBuyer(scene.chain);
  const header = await signFor(shop, payer, shop.url);
  const { port, pathname, host } = new URL(shop.url);
  const client = connect(Number(port), "127.0.0.1");
  const head = ["POST", "HTTP/1.1"].join(` ${pathname} `);
  client.write(`${head}\r\nHost: ${host}\r\nContent-Length: 1000\r\nPAYMENT-SIGNATURE: ${header}\r\n\r\n{"lines":`);
  client.end();
  await eventually(() => logged.mock.calls.length, 1);
  expect([framework, handler.mock.calls.length, await holdsBy(scene, payer.address)]).toEqual([framework, 0, 0]);
});

/** Returns the response to a client that reads only after it has sent everything, as many clients do. */
async function sendThenRead(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<string> {
  const { port, pathname, host } = new URL(url);
  const client = connect(Number(port), "127.0.0.1").pause();
  const lines = Object.entries({ Host: host, "Content-Length": body.length, Connection: "close", ...headers });
  const head = [["POST", "HTTP/1.1"].join(` ${pathname} `), ...lines.map((line) => line.join(": "))];
  await new Promise<void>((resolve, reject) => {
    client.on("error", reject);
    client.write(`${head.join("\r\n")}\r\n\r\n${body}`, () => resolve());
  });
  return text(client);
}

test.each(FRAMEWORKS)("%s: A request of more than 16 MiB is refused before anything is held", async (_, open) => {
  const shop = await open(await merchantIn(scene), () => Response.json({}));
  const payer = await newBuyer(scene.chain);
  const header = await signFor(shop, payer, shop.url);
  const send = (size: number) => sendThenRead(shop.url, { "PAYMENT-SIGNATURE": header }, "x".repeat(size));
  const most = 16 * 1024 * 1024;
  for (const size of [most + 1, 1.5 * most]) {
    const refused = await send(size);
    expect(refused).toMatch(/^HTTP\/1\.1 413 /);
    expect(refused).toMatch(/larger than 16777216 bytes/);
  }
  expect(await holdsBy(scene, payer.address)).toBe(0);
  expect(await send(most)).toMatch(/^HTTP\/1\.1 200 /);
});

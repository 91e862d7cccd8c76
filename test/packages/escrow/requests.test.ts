import { gunzipSync } from "node:zlib";
import { type Handler, Hono } from "hono";
import { compress } from "hono/compress";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, expect, test, vi } from "vitest";
import { type EscrowedOptions, escrowed, memoryStore, sendFrom } from "../../../packages/escrow/src/index.ts";
import { escrowed as inNext, type RouteOptions } from "../../../packages/escrow/src/next.ts";
import { escrowAt } from "../../../packages/escrow/src/terms.ts";
import { asDelivery } from "../../../packages/escrow/src/validate.ts";
import {
  buyFrom,
  holdsBy,
  newBuyer,
  openShop,
  type Pays,
  pay,
  presentedIn,
  SHOP,
  signFor,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const handler = vi.fn<Handler>();
beforeEach(() => {
  handler.mockReset().mockImplementation((c) => c.json({ haiku: "An old silent pond", lines: c.req.query("lines") }));
});

const GOOD = `${SHOP}?lines=3`;
const BAD = `${SHOP}?lines=4`;
const validate: NonNullable<EscrowedOptions["validate"]> = (c) =>
  c.req.query("lines") === "3" ? null : "A haiku has 3 lines.";
const buyer = () => newBuyer(scene.chain);
const account = privateKeyToAccount(generatePrivateKey());
await scene.chain.setBalance(account.address, 10n ** 18n);
const common = {
  ...{ account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url, store: memoryStore() },
  log: () => undefined,
};

test("An unpaid request with refused input gets the refusal, without terms to sign", async () => {
  const shop = await openShop(scene, handler, { validate });
  const response = await shop.fetch(BAD, { method: "POST" });
  expect(response.status).toBe(422);
  expect(await response.json()).toEqual({ error: "A haiku has 3 lines." });
  expect(response.headers.get("payment-required")).toBeNull();
  expect((await shop.fetch(GOOD, { method: "POST" })).status).toBe(402);
});

test("A paid request with refused input holds nothing, and its payment still buys", async () => {
  const shop = await openShop(scene, handler, {
    validate: (c) => (c.req.query("lines") === "3" ? undefined : Response.json({ lines: "is not 3" }, { status: 400 })),
  });
  const payer = await buyer();
  const header = await signFor(shop, payer, GOOD);
  const refused = await pay(shop, header, BAD);
  expect({ status: refused.status, body: await refused.json() }).toEqual({ status: 400, body: { lines: "is not 3" } });
  expect([await holdsBy(scene, payer.address), handler.mock.calls.length]).toEqual([0, 0]);
  expect((await pay(shop, header, GOOD)).status).toBe(200);
});

test("Refused and good input sent together with one payment each get their own response", async () => {
  const shop = await openShop(scene, handler, { validate });
  const payer = await buyer();
  const header = await signFor(shop, payer, GOOD);
  const urls = [BAD, GOOD, BAD, GOOD];
  const answers = await Promise.all(urls.map((url) => pay(shop, header, url)));
  // Once the payment is held, it is bound to the good input, so the refused input is another resource.
  expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(2);
  for (const [at, { status }] of answers.entries()) {
    expect(urls[at] === GOOD ? [200] : [409, 422]).toContain(status);
  }
  expect([await holdsBy(scene, payer.address), handler.mock.calls.length]).toEqual([1, 1]);
});

test("Refused input of a buyer who held the payment itself is delivered and refunded immediately", async () => {
  const shop = await openShop(scene, handler, { validate });
  const payer = await buyer();
  const header = await signFor(await openShop(scene, handler, { account: shop.account }), payer, GOOD);
  const { info, signature } = presentedIn(header);
  const request = { info, signature, escrow: { ...escrowAt(scene.escrow.address), chainId: 8453 } };
  const hash = await sendFrom(scene.chain.client as never, shop.account)(request as never);
  await scene.chain.client.waitForTransactionReceipt({ hash });
  const response = await pay(shop, header, BAD);
  expect([response.status, response.headers.get("x-escrow-decision")]).toEqual([422, "refund"]);
  expect(await response.json()).toEqual({ error: "A haiku has 3 lines." });
  expect(handler).not.toHaveBeenCalled();
  const id = response.headers.get("x-escrow-payment") as `0x${string}`;
  await eventually(() => statusOf(scene, id), "refunded" as const);
  expect(await scene.chain.usdcBalance(payer.address)).toBe(1_000_000n);
});

test.each([
  ["a 400", Response.json("no", { status: 400 }), 400, '"no"'],
  ["a 404, which would count against the merchant", Response.json("none", { status: 404 }), 422, '"none"'],
  ["no body", new Response(null, { status: 422 }), 422, '{"error":"This input is refused."}'],
  ["too long an echo", new Response("x".repeat(256 * 1024 + 1)), 422, '{"error":"This input is refused."}'],
])("A refusal with %s is delivered as one of the buyer's input", async (...[_, refusal, status, body]) => {
  const delivery = await asDelivery(refusal);
  expect([delivery.status, await delivery.text()]).toEqual([status, body]);
});

test("A delivery is replayed without a second validation", async () => {
  let isOpen = true;
  const shop = await openShop(scene, handler, { validate: () => (isOpen ? null : "We are closed.") });
  const { header } = await buyFrom(shop, await buyer());
  isOpen = false;
  expect((await shop.fetch(SHOP, { method: "POST" })).status).toBe(422);
  const again = await pay(shop, header);
  expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
});

test.each([
  ["answers a 200", () => Response.json({ haiku: "for nothing" })],
  [
    "throws",
    () => {
      throw new Error("no ink");
    },
  ],
])("A check that %s is the shop's own 500, which delivers nothing and holds nothing", async (_, broken) => {
  const shop = await openShop(scene, handler, { validate: broken });
  const payer = await buyer();
  const header = await signFor(await openShop(scene, handler, { account: shop.account }), payer);
  const reported = vi.spyOn(console, "error").mockImplementation(() => undefined);
  for (const response of [await shop.fetch(SHOP, { method: "POST" }), await pay(shop, header)]) {
    expect([response.status, await response.text()]).toEqual([500, "Internal Server Error"]);
    expect(response.headers.get("payment-required")).toBeNull();
  }
  reported.mockRestore();
  expect(await holdsBy(scene, payer.address)).toBe(0);
  expect(handler).not.toHaveBeenCalled();
});

type Route = Parameters<typeof inNext<Request, { params: string }>>[1];

/** A route handler, called as Next calls it. */
function openRoute(handler: Route, { asSent = itself, ...options }: RouteChoices = {}) {
  const POST = inNext({ ...common, ...options }, handler);
  return { fetch: (async (input, init) => POST(asSent(new Request(input, init)), { params: "3" })) as typeof fetch };
}

interface RouteChoices extends Partial<RouteOptions<Request>> {
  readonly asSent?: (request: Request) => Request;
}

const itself = (request: Request): Request => request;

/** Next tracks which parts of its request a route reads. */
const asProxy = (request: Request): Request =>
  new Proxy(request, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

test.each<Pays>(["auth-capture", "commerce"])(
  "%s: A route handler gets its request, its context, and the payment's id, and is paid",
  async (pays) => {
    const handler = vi.fn<Route>((_request, { params }) => Response.json({ haiku: "An old silent pond", params }));
    const route = openRoute(handler);
    const { response, decision, id, header } = await buyFrom(route, await buyer(), { pays });
    expect([response.status, await response.json()]).toEqual([200, { haiku: "An old silent pond", params: "3" }]);
    expect(decision).toBe("release");
    expect(handler.mock.calls[0]?.[2]).toBe(id);
    expect((await pay(route, header)).headers.get("x-idempotent-replay")).toBe("true");
    expect(handler).toHaveBeenCalledTimes(1);
    await eventually(() => statusOf(scene, id, pays), "released" as const);
  },
);

/** Honors conditions, as Hono's `etag()` does, and echoes the rest. */
const echo = (headers: Headers, body: string): Response =>
  headers.has("if-none-match") || headers.has("range")
    ? new Response(null, { status: 304 })
    : Response.json({ shop: headers.get("x-shop"), body });
const echoed = async (request: Request) => echo(request.headers, await request.text());
const hasThree = (body: string) => (body === "3" ? null : "A haiku has 3 lines.");

test.each([
  ["a route handler", () => openRoute(echoed, { validate: async (request) => hasThree(await request.text()) }), 422],
  ["a Next route handler", () => openRoute(echoed, { asSent: asProxy }), 402],
  [
    "a Hono handler",
    () =>
      openShop(scene, async (c) => echo(c.req.raw.headers, await c.req.text()), {
        validate: async (c) => hasThree(await c.req.text()),
      }),
    422,
  ],
])("After a check that read the body, %s gets it without its buyer's conditions or range", async (_, open, refused) => {
  const route = await open();
  const send =
    (body: string): typeof fetch =>
    (url, init) => {
      const headers = new Headers(new Request(url, init).headers);
      for (const [name, value] of Object.entries({ "if-none-match": "*", range: "bytes=0-0", "x-shop": "haiku" }))
        headers.set(name, value);
      return route.fetch(url instanceof Request ? url.url : url, { method: "POST", headers, body });
    };
  expect((await send("4")(SHOP)).status).toBe(refused);
  const { response, decision } = await buyFrom({ fetch: send("3") }, await buyer());
  expect([response.status, await response.json(), decision]).toEqual([200, { shop: "haiku", body: "3" }, "release"]);
});

const LONG = { haiku: "An old silent pond / ".repeat(200) };

test.each(["before", "between"] as const)(
  "With compression %s the middleware and the handler, a response and its replay are compressed and released",
  async (place) => {
    const compressed = new Hono();
    if (place === "before") compressed.use(compress());
    compressed.use("/haiku", escrowed(common));
    if (place === "between") compressed.use(compress());
    compressed.post("/haiku", (c) => c.json(LONG));
    const shop = {
      fetch: (async (input, init) => {
        const request = new Request(input, init);
        request.headers.set("accept-encoding", "gzip");
        return compressed.fetch(request);
      }) as typeof fetch,
    };
    const { response, header, decision, id } = await buyFrom(shop, await buyer());
    const headers = place === "between" ? { "content-encoding": "gzip" } : { "content-type": "application/json" };
    expect(scene.arbiter.forwarded.at(-1)).toMatchObject({ response: { headers } });
    await eventually(() => statusOf(scene, id), "released" as const);
    const again = await pay(shop, header);
    expect([decision, again.headers.get("x-idempotent-replay")]).toEqual(["release", "true"]);
    for (const answer of [response, again]) {
      expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, "gzip"]);
      expect(JSON.parse(gunzipSync(await answer.arrayBuffer()).toString())).toEqual(LONG);
    }
  },
);

test("A merchant that configures its contract, and does not query the service, signs the same terms", async () => {
  const shop = await openShop(scene, handler, { escrow: scene.escrow.address });
  expect((await buyFrom(shop, await buyer())).decision).toBe("release");
  expect(scene.arbiter.forwarded.at(-1)).toMatchObject({ delivery_version: 1 });
});

const HAIKU = { haiku: "An old silent pond" };
const hono = new Hono().on(
  ["OPTIONS", "POST"],
  "/haiku",
  escrowed(common, (c) => c.json(HAIKU)),
);
const route = inNext(common, () => Response.json(HAIKU));

const preflight = (headers: Record<string, string>) => new Request(SHOP, { method: "OPTIONS", headers });

test.each<[string, (request: Request) => Response | Promise<Response>]>([
  ["Hono", (request) => hono.fetch(request)],
  ["Next", (request) => route(request, {})],
])("A shop on %s allows the headers that a preflight requests, and every page may read its terms", async (_, serve) => {
  const names = "access-control-expose-headers,content-type,payment-signature,x-of-its-own";
  const allowed = await serve(
    preflight({
      origin: "https://elsewhere.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": names,
      "access-control-request-private-network": "true",
    }),
  );
  expect(allowed.status).toBe(204);
  expect(Object.fromEntries(allowed.headers)).toMatchObject({
    "access-control-allow-private-network": "true",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": names,
  });
  const { status, headers } = await serve(new Request(SHOP, { method: "POST" }));
  expect([status, headers.get("access-control-allow-origin")]).toEqual([402, "*"]);
  expect(headers.get("access-control-expose-headers")).toMatch(/PAYMENT-REQUIRED.*X-Escrow-Decision/);
});

test("A preflight gets no overlong list of headers and no invalid method back", async () => {
  const { headers } = await hono.fetch(
    preflight({
      "access-control-request-method": "POST, DELETE",
      "access-control-request-headers": "x-more,".repeat(1_000),
    }),
  );
  expect(headers.get("access-control-allow-headers")).toBeNull();
  expect(headers.get("access-control-allow-methods")).toBe("GET, POST");
});

test("Keys are read at the first request, so a build that loads the route needs none", async () => {
  const read: string[] = [];
  const noted = <T>(name: string, value: T) => {
    read.push(name);
    return value;
  };
  const lazy = openRoute(() => Response.json(HAIKU), {
    account: () => noted("account", account),
    rpcUrl: () => noted("node", scene.chain.rpcUrl),
  });
  expect(read).toEqual([]);
  const { decision } = await buyFrom(lazy, await buyer());
  expect([decision, read]).toEqual(["release", ["account", "node"]]);
});

test("Keys that are missing at the first request raise an error on the server that names them", async () => {
  const noKey = openRoute(() => Response.json(HAIKU), { account: () => privateKeyToAccount(undefined as never) });
  await expect(noKey.fetch(SHOP, { method: "POST" })).rejects.toThrow();
  const noNode = openRoute(() => Response.json(HAIKU), { rpcUrl: () => undefined });
  await expect(noNode.fetch(SHOP, { method: "POST" })).rejects.toThrow(/rpcUrl or client/);
});

test("An account without ETH is reported at the start, unless another account sends the holds", async () => {
  const poor = privateKeyToAccount(generatePrivateKey());
  const log = vi.fn();
  for (const options of [{}, { account: poor, hold: async () => "0x" as const }])
    await openRoute(() => Response.json(HAIKU), { ...options, log }).fetch(SHOP, { method: "POST" });
  expect(log).not.toHaveBeenCalled();
  openRoute(() => Response.json(HAIKU), { account: poor, log });
  await eventually(() => log.mock.calls.length, 1);
  expect(log).toHaveBeenCalledWith(
    expect.stringMatching(`^The merchant's account ${poor.address} has 0 ETH, too little`),
  );
});

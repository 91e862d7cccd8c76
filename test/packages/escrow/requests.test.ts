import { gunzipSync } from "node:zlib";
import { type Handler, Hono } from "hono";
import { compress } from "hono/compress";
import { setCookie } from "hono/cookie";
import { cors } from "hono/cors";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { type EscrowedOptions, escrowed, memoryStore, sendFrom } from "../../../packages/escrow/src/index.ts";
import { escrowed as inNext, type RouteOptions } from "../../../packages/escrow/src/next.ts";
import { escrowAt } from "../../../packages/escrow/src/terms.ts";
import { wholeRequest } from "../../../packages/escrow/src/whole-request.ts";
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

test("The handler can read the body that validate has read", async () => {
  const shop = await openShop(scene, async (c) => c.json(await c.req.json()), {
    validate: async (c) => ((await c.req.json()).lines === 3 ? null : "A haiku has 3 lines."),
  });
  const body = (lines: number) => ({ method: "POST", body: JSON.stringify({ lines }) });
  expect((await shop.fetch(SHOP, body(4))).status).toBe(422);
  const sending = { fetch: ((url, init) => shop.fetch(url, { ...init, ...body(3) })) as typeof fetch };
  const header = await signFor(sending, await buyer());
  const response = await sending.fetch(SHOP, { headers: { "payment-signature": header } });
  expect(await response.json()).toEqual({ lines: 3 });
});

const LARGE = "x".repeat(256 * 1024 + 1);

interface Refusal {
  readonly what: string;
  readonly refuses: NonNullable<EscrowedOptions["validate"]>;
  readonly status: number;
  readonly error: string;
}
const REFUSALS: readonly Refusal[] = [
  { what: "a text", refuses: validate, status: 422, error: "A haiku has 3 lines." },
  { what: "a 400", refuses: () => Response.json({ error: "no" }, { status: 400 }), status: 400, error: "no" },
  {
    what: "a 404, which would count against the merchant",
    refuses: () => Response.json({ error: "none" }, { status: 404 }),
    ...{ status: 422, error: "none" },
  },
  {
    what: "a response without a body",
    refuses: () => new Response(null, { status: 422 }),
    ...{ status: 422, error: "This input is refused." },
  },
  {
    what: "a response that echoes too much",
    refuses: () => new Response(LARGE, { status: 400 }),
    ...{ status: 422, error: "This input is refused." },
  },
];

test.each(REFUSALS)(
  "Refused input of a buyer who held the payment itself is delivered and refunded immediately: $what",
  async ({ refuses, status, error }) => {
    const shop = await openShop(scene, handler, { validate: refuses });
    const payer = await buyer();
    const header = await signFor(await openShop(scene, handler, { account: shop.account }), payer, GOOD);
    const { info, signature } = presentedIn(header);
    const request = { info, signature, escrow: { ...escrowAt(scene.escrow.address), chainId: 8453 } };
    const hash = await sendFrom(scene.chain.client as never, shop.account)(request as never);
    await scene.chain.client.waitForTransactionReceipt({ hash });
    const response = await pay(shop, header, BAD);
    const decision = response.headers.get("x-escrow-decision");
    expect({ status: response.status, decision, body: await response.json() }).toEqual({
      ...{ status, decision: "refund" },
      body: { error },
    });
    expect(handler).not.toHaveBeenCalled();
    const id = response.headers.get("x-escrow-payment") as `0x${string}`;
    await eventually(() => statusOf(scene, id), "refunded" as const);
    expect(await scene.chain.usdcBalance(payer.address)).toBe(1_000_000n);
  },
);

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
  expect(reported).toHaveBeenCalledTimes(2);
  reported.mockRestore();
  expect(await holdsBy(scene, payer.address)).toBe(0);
  expect(handler).not.toHaveBeenCalled();
});

const account = privateKeyToAccount(generatePrivateKey());
await scene.chain.setBalance(account.address, 10n ** 18n);

type Route = Parameters<typeof inNext<Request, { params: string }>>[1];

/** A route handler, called as Next calls it. */
function openRoute(handler: Route, { asSent = itself, ...options }: RouteChoices = {}) {
  const common = { account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  const POST = inNext({ ...common, store: memoryStore(), log: () => undefined, ...options }, handler);
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
    const { response, decision, id, header } = await buyFrom(route, await newBuyer(scene.chain), { pays });
    expect([response.status, await response.json()]).toEqual([200, { haiku: "An old silent pond", params: "3" }]);
    expect(decision).toBe("release");
    expect(handler.mock.calls[0]?.[2]).toBe(id);
    expect((await pay(route, header)).headers.get("x-idempotent-replay")).toBe("true");
    expect(handler).toHaveBeenCalledTimes(1);
    await eventually(() => statusOf(scene, id, pays), "released" as const);
  },
);

test("The check reads the body, and the handler can read it again", async () => {
  const route = openRoute(async (request) => new Response(await request.text()), {
    validate: async (request) => ((await request.text()) === "3" ? null : "A haiku has 3 lines."),
  });
  const withBody = (body: string) => ({
    fetch: ((url, init) => route.fetch(url, { ...init, method: "POST", body })) as typeof fetch,
  });
  expect((await withBody("4").fetch("http://shop.example/haiku")).status).toBe(422);
  const { response } = await buyFrom(withBody("3"), await newBuyer(scene.chain));
  expect([response.status, await response.text()]).toEqual([200, "3"]);
});

test("A handler that throws delivers a 500, which is refunded", async () => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const route = openRoute(() => {
    throw new Error("no ink");
  });
  const { response, decision } = await buyFrom(route, await newBuyer(scene.chain));
  silent.mockRestore();
  expect([response.status, decision]).toEqual([500, "refund"]);
});

/** Honors conditions, as Hono's `etag()` does. */
const heeding = (headers: Headers): Response =>
  headers.has("if-none-match") || headers.has("range")
    ? new Response(null, { status: 304 })
    : Response.json({ haiku: "An old silent pond" });
const readsBody = async (request: Request) => ((await request.text()) === "3" ? null : "A haiku has 3 lines.");

test.each([
  ["a route handler", () => openRoute((request) => heeding(request.headers), { validate: readsBody })],
  ["a Next route handler", () => openRoute((request) => heeding(request.headers), { asSent: asProxy })],
  [
    "a Hono handler",
    () =>
      openShop(scene, (c) => heeding(c.req.raw.headers), {
        validate: async (c) => ((await c.req.text()) === "3" ? null : "A haiku has 3 lines."),
      }),
  ],
])("For a buyer who sends conditions or a range, %s gets a request without them", async (_, open) => {
  const route = await open();
  const asking = {
    fetch: ((url, init) => {
      const headers = new Headers(new Request(url, init).headers);
      for (const [name, value] of Object.entries({ "if-none-match": "*", range: "bytes=0-0" }))
        headers.set(name, value);
      return route.fetch(url instanceof Request ? url.url : url, { method: "POST", headers, body: "3" });
    }) as typeof fetch,
  };
  const { response, decision } = await buyFrom(asking, await newBuyer(scene.chain));
  expect([response.status, await response.json(), decision]).toEqual([200, { haiku: "An old silent pond" }, "release"]);
});

/** Deno and Cloudflare Workers have such headers. */
function withFixedHeaders(request: Request): Request {
  const value = () => {
    throw new TypeError("Headers are immutable.");
  };
  Object.defineProperty(request.headers, "delete", { value });
  return request;
}

const CONDITIONS = { "If-None-Match": "*", "If-Modified-Since": "Wed, 21 Oct 2015 07:28:00 GMT", Range: "bytes=0-0" };

test.each([
  ["can be changed", itself],
  ["cannot be changed", withFixedHeaders],
])("A request whose headers %s is passed on without its conditions and otherwise unchanged", async (_, asSent) => {
  const headers = { ...CONDITIONS, "content-type": "text/plain", "x-shop": "3" };
  const sent = new Request("http://shop.example/haiku", { method: "PUT", body: "rain", headers });
  const request = wholeRequest(asSent(sent));
  expect([request.method, request.url, await request.text()]).toEqual(["PUT", "http://shop.example/haiku", "rain"]);
  expect(Object.fromEntries(request.headers)).toEqual({ "content-type": "text/plain", "x-shop": "3" });
});

test("A request whose body has been read is passed on without its body", async () => {
  const sent = new Request("http://shop.example/haiku", { method: "POST", body: "rain", headers: CONDITIONS });
  const read = withFixedHeaders(sent);
  await read.text();
  expect([...wholeRequest(read).headers.keys()]).not.toContain("range");
});

const haiku = { haiku: "An old silent pond / ".repeat(200) };

/** A shop with Hono's `compress()`, for buyers that accept gzip. */
async function openCompressed(place: "before" | "between") {
  const account = privateKeyToAccount(generatePrivateKey());
  await scene.chain.setBalance(account.address, 10n ** 18n);
  const common = { account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  const selling = escrowed({ ...common, store: memoryStore() });
  const app = new Hono();
  app.use(async (c, next) => {
    setCookie(c, "visitor", "early");
    await next();
    setCookie(c, "session", "late");
  });
  if (place === "before") app.use(compress());
  app.use("/haiku", selling);
  if (place === "between") app.use(compress());
  app.post("/haiku", (c) => c.json(haiku, 200, { "set-cookie": "own=1" }));
  return {
    fetch: (async (input, init) => {
      const request = new Request(input, init);
      request.headers.set("accept-encoding", "gzip");
      return app.fetch(request);
    }) as typeof fetch,
  };
}

test.each(["before", "between"] as const)("A hold that arrives undelivered %s (%i s) gets a %i", async (place) => {
  const shop = await openCompressed(place);
  const { response, header, decision, id } = await buyFrom(shop, await newBuyer(scene.chain));
  expect(scene.arbiter.forwarded.at(-1)).toMatchObject({
    delivery_version: 1,
    response: {
      headers: place === "between" ? { "content-encoding": "gzip" } : { "content-type": "application/json" },
    },
  });
  await eventually(() => statusOf(scene, id), "released" as const);
  const again = await pay(shop, header);
  expect([decision, again.headers.get("x-idempotent-replay")]).toEqual(["release", "true"]);
  for (const answer of [response, again]) {
    expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, "gzip"]);
    expect(JSON.parse(gunzipSync(await answer.arrayBuffer()).toString())).toEqual(haiku);
    expect(
      answer.headers
        .getSetCookie()
        .map((cookie) => cookie.split(";")[0])
        .sort(),
    ).toEqual([...["own=1", "session=late", "visitor=early"]]);
  }
});

test("A merchant that configures its contract, and does not query the service, signs the same terms", async () => {
  const shop = await openShop(scene, (c) => c.json(haiku), { escrow: scene.escrow.address });
  expect((await buyFrom(shop, await newBuyer(scene.chain))).decision).toBe("release");
  expect(scene.arbiter.forwarded.at(-1)).toMatchObject({ delivery_version: 1 });
});

await scene.chain.setBalance(account.address, 10n ** 18n);
const options = {
  account,
  rpcUrl: scene.chain.rpcUrl,
  price: "0.10",
  arbiterUrl: scene.arbiter.url,
  store: memoryStore(),
};
const AT_SHOP = "https://shop.example/haiku";
const HAIKU = { haiku: "An old silent pond" };

const hono = new Hono().on(
  ["OPTIONS", "POST"],
  "/haiku",
  escrowed(options, (c) => c.json(HAIKU)),
);
const route = inNext(options, () => Response.json(HAIKU));

describe.each<[string, (request: Request) => Response | Promise<Response>]>([
  ["Hono", (request) => hono.fetch(request)],
  ["Next", (request) => route(request, {})],
])("a shop on %s", (_, serve) => {
  const preflight = (headers: Record<string, string>) => serve(new Request(AT_SHOP, { method: "OPTIONS", headers }));

  test("It allows the headers that a preflight requests", async () => {
    const names = "access-control-expose-headers,content-type,payment-signature,x-of-its-own";
    const { status, headers } = await preflight({
      origin: "https://elsewhere.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": names,
      "access-control-request-private-network": "true",
    });
    expect(headers.get("access-control-allow-private-network")).toBe("true");
    expect(status).toBe(204);
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-allow-methods")).toBe("POST");
    expect(headers.get("access-control-allow-headers")).toBe(names);
  });

  test("It echoes no overlong list of headers and no invalid method", async () => {
    const { headers } = await preflight({
      "access-control-request-method": "POST, DELETE",
      "access-control-request-headers": "x-more,".repeat(1_000),
    });
    expect(headers.get("access-control-allow-headers")).toBeNull();
    expect(headers.get("access-control-allow-methods")).toBe("GET, POST");
  });

  test("Pages of every origin may read its terms", async () => {
    const { status, headers } = await serve(new Request(AT_SHOP, { method: "POST" }));
    expect([status, headers.get("access-control-allow-origin")]).toEqual([402, "*"]);
    expect(headers.get("access-control-expose-headers")).toMatch(/PAYMENT-REQUIRED.*X-Escrow-Decision/);
  });
});

test("CORS headers from the merchant's own middleware are kept", async () => {
  const origin = "https://app.example";
  const app = new Hono().use(cors({ origin, credentials: true, exposeHeaders: ["X-Shop"] })).post(
    "/haiku",
    escrowed({ ...options, store: memoryStore() }, (c) => c.json(HAIKU)),
  );
  const sent = (request: Request) => {
    request.headers.set("origin", origin);
    return app.fetch(request);
  };
  const shop = { fetch: (async (input, init) => sent(new Request(input, init))) as typeof fetch };
  const unpaid = await shop.fetch(AT_SHOP, { method: "POST" });
  const { response: paid } = await buyFrom(shop, await newBuyer(scene.chain), { url: AT_SHOP });
  expect([unpaid.status, paid.status]).toEqual([402, 200]);
  for (const { headers } of [unpaid, paid]) {
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("access-control-expose-headers")).toBe("X-Shop");
  }
});

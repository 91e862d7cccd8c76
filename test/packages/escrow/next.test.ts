import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { memoryStore } from "../../../packages/escrow/src/index.ts";
import { escrowed, type RouteOptions } from "../../../packages/escrow/src/next.ts";
import { buyFrom, newBuyer, openShop, type Pays, pay, startSaleScene, statusOf } from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const account = privateKeyToAccount(generatePrivateKey());
await scene.chain.setBalance(account.address, 10n ** 18n);

type Route = Parameters<typeof escrowed<Request, { params: string }>>[1];

/** A route handler as Next calls it. */
function openRoute(handler: Route, { asSent = itself, ...options }: RouteChoices = {}) {
  const common = { account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  const POST = escrowed({ ...common, store: memoryStore(), log: () => undefined, ...options }, handler);
  return { fetch: (async (input, init) => POST(asSent(new Request(input, init)), { params: "3" })) as typeof fetch };
}

interface RouteChoices extends Partial<RouteOptions<Request>> {
  readonly asSent?: (request: Request) => Request;
}

const itself = (request: Request): Request => request;

/** Next watches what a route reads of its request. */
const asProxy = (request: Request): Request =>
  new Proxy(request, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

test.each<Pays>(["auth-capture", "commerce"])(
  "%s: a route handler gets its request, its context and the payment's id, and is paid",
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

test("its check reads the body, and the handler reads it again", async () => {
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

test("a handler that throws delivers a 500, which is refunded", async () => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const route = openRoute(() => {
    throw new Error("no ink");
  });
  const { response, decision } = await buyFrom(route, await newBuyer(scene.chain));
  silent.mockRestore();
  expect([response.status, decision]).toEqual([500, "refund"]);
});

/** As `etag()` of Hono does, and whatever else heeds conditions. */
const heeding = (headers: Headers): Response =>
  headers.has("if-none-match") || headers.has("range")
    ? new Response(null, { status: 304 })
    : Response.json({ haiku: "An old silent pond" });
const readsBody = async (request: Request) => ((await request.text()) === "3" ? null : "A haiku has 3 lines.");

test.each([
  ["a route handler", () => openRoute((request) => heeding(request.headers), { validate: readsBody })],
  ["a route handler of Next", () => openRoute((request) => heeding(request.headers), { asSent: asProxy })],
  [
    "a handler of Hono",
    () =>
      openShop(scene, (c) => heeding(c.req.raw.headers), {
        validate: async (c) => ((await c.req.text()) === "3" ? null : "A haiku has 3 lines."),
      }),
  ],
])("%s is asked for the whole by a buyer who asks on a condition, or for a part", async (_, open) => {
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

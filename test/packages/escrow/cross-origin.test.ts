import { Hono } from "hono";
import { cors } from "hono/cors";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { escrowed, memoryStore } from "../../../packages/escrow/src/index.ts";
import { escrowed as nextRoute } from "../../../packages/escrow/src/next.ts";
import { buyFrom, newBuyer, startSaleScene } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const account = privateKeyToAccount(generatePrivateKey());
await scene.chain.setBalance(account.address, 10n ** 18n);
const options = {
  account,
  rpcUrl: scene.chain.rpcUrl,
  price: "0.10",
  arbiterUrl: scene.arbiter.url,
  store: memoryStore(),
};
const SHOP = "https://shop.example/haiku";
const HAIKU = { haiku: "An old silent pond" };

const hono = new Hono().on(
  ["OPTIONS", "POST"],
  "/haiku",
  escrowed(options, (c) => c.json(HAIKU)),
);
const route = nextRoute(options, () => Response.json(HAIKU));

describe.each<[string, (request: Request) => Response | Promise<Response>]>([
  ["Hono", (request) => hono.fetch(request)],
  ["Next", (request) => route(request, {})],
])("a shop on %s", (_, serve) => {
  const preflight = (headers: Record<string, string>) => serve(new Request(SHOP, { method: "OPTIONS", headers }));

  test("allows the headers that a preflight asks for", async () => {
    const names = "access-control-expose-headers,content-type,payment-signature,x-of-its-own";
    const { status, headers } = await preflight({
      origin: "https://elsewhere.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": names,
    });
    expect(status).toBe(204);
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-allow-methods")).toBe("POST");
    expect(headers.get("access-control-allow-headers")).toBe(names);
  });

  test("repeats neither an endless list of headers nor a method that is none", async () => {
    const { headers } = await preflight({
      "access-control-request-method": "POST, DELETE",
      "access-control-request-headers": "x-more,".repeat(1_000),
    });
    expect(headers.get("access-control-allow-headers")).toBeNull();
    expect(headers.get("access-control-allow-methods")).toBe("GET, POST");
  });

  test("lets every page read its terms", async () => {
    const { status, headers } = await serve(new Request(SHOP, { method: "POST" }));
    expect([status, headers.get("access-control-allow-origin")]).toEqual([402, "*"]);
    expect(headers.get("access-control-expose-headers")).toMatch(/PAYMENT-REQUIRED.*X-Escrow-Decision/);
  });
});

test("what the merchant's own middleware allows is kept", async () => {
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
  const unpaid = await shop.fetch(SHOP, { method: "POST" });
  const { response: paid } = await buyFrom(shop, await newBuyer(scene.chain), { url: SHOP });
  expect([unpaid.status, paid.status]).toEqual([402, 200]);
  for (const { headers } of [unpaid, paid]) {
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("access-control-expose-headers")).toBe("X-Shop");
  }
});

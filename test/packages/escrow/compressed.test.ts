import { gunzipSync } from "node:zlib";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { setCookie } from "hono/cookie";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { escrowed, memoryStore } from "../../../packages/escrow/src/index.ts";
import { buyFrom, newBuyer, openShop, pay, startSaleScene, statusOf } from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const haiku = { haiku: "An old silent pond / ".repeat(200) };

/** A shop with Hono's `compress()`, for buyers that take gzip. */
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

test.each(["before", "between"] as const)(
  "compress() %s it compresses, and every cookie arrives, also with a replay",
  async (place) => {
    const shop = await openCompressed(place);
    const { response, header, decision } = await buyFrom(shop, await newBuyer(scene.chain));
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
  },
);

/** Hono's `compress()` between the escrow and the handler, for buyers that take gzip. */
test("JSON that Hono's compress() has compressed is delivered as it is, and released", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  await scene.chain.setBalance(account.address, 10n ** 18n);
  const common = { account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url };
  const app = new Hono();
  app.use("/haiku", escrowed({ ...common, store: memoryStore() }), compress());
  app.post("/haiku", (c) => c.json(haiku));
  const shop = {
    fetch: (async (input, init) => {
      const request = new Request(input, init);
      request.headers.set("accept-encoding", "gzip");
      return app.fetch(request);
    }) as typeof fetch,
  };
  const { response, decision, id } = await buyFrom(shop, await newBuyer(scene.chain));
  expect([response.status, response.headers.get("content-encoding"), decision]).toEqual([200, "gzip", "release"]);
  expect(JSON.parse(gunzipSync(await response.arrayBuffer()).toString())).toEqual(haiku);
  const forwarded = scene.arbiter.forwarded.at(-1);
  expect(forwarded).toMatchObject({
    delivery_version: 1,
    response: { headers: { "content-encoding": "gzip", "content-type": "application/json" } },
  });
  await eventually(() => statusOf(scene, id), "released" as const);
});

test("a merchant that names its contract, and does not ask the service, signs the same", async () => {
  const shop = await openShop(scene, (c) => c.json(haiku), { escrow: scene.escrow.address });
  expect((await buyFrom(shop, await newBuyer(scene.chain))).decision).toBe("release");
  expect(scene.arbiter.forwarded.at(-1)).toMatchObject({ delivery_version: 1 });
});

import { gunzipSync } from "node:zlib";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { escrowed, memoryStore } from "../../../packages/escrow/src/index.ts";
import { buyFrom, newBuyer } from "../../support/escrow/purchase.ts";
import { startSaleScene, statusOf } from "../../support/escrow/sale-scene.ts";
import { openShop } from "../../support/escrow/shop.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const haiku = { haiku: "An old silent pond / ".repeat(200) };

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

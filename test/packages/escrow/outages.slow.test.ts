import type { Handler } from "hono";
import { createClient, http } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { memoryStore, sendFrom } from "../../../packages/escrow/src/index.ts";
import { leaveAt, startFaultyNode, unreachable } from "../../support/chain/nodes.ts";
import {
  buyFrom,
  haiku,
  holdsBy,
  newBuyer,
  openShop,
  pay,
  signFor,
  startSaleScene,
  statusOf,
} from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
const node = await forFile(startFaultyNode(scene.chain));

beforeEach(() => {
  scene.arbiter.become("fair");
  node.become(null);
});

const buyer = () => newBuyer(scene.chain);
const countingHandler = () => vi.fn<Handler>(haiku);

describe("the arbiter", () => {
  test("While the arbiter is down, the buyer gets the response immediately, and it is evaluated later", async () => {
    const shop = await openShop(scene, haiku);
    await shop.fetch("http://shop.example/haiku", { method: "POST" });
    scene.arbiter.become("down");
    const { response, id, decision } = await buyFrom(shop, await buyer());
    expect({ status: response.status, decision }).toEqual({ status: 200, decision: "pending" });
    expect(await statusOf(scene, id)).toBe("held");
    scene.arbiter.become("fair");
    await eventually(() => statusOf(scene, id), "released" as const, 10_000);
    expect(shop.logged[0]).toMatch(/is not decided yet/);
  });

  test("With a slow arbiter, the buyer waits 5 s and no longer, and the late decision still counts", async () => {
    const shop = await openShop(scene, haiku);
    scene.arbiter.become({ delayMs: 9_000 });
    const before = Date.now();
    const { decision, header } = await buyFrom(shop, await buyer());
    const waited = Date.now() - before;
    expect(decision).toBe("pending");
    expect(waited).toBeGreaterThanOrEqual(5_000);
    expect(waited).toBeLessThan(9_000);
    scene.arbiter.become("fair");
    const again = await pay(shop, header);
    expect(again.headers.get("x-escrow-decision")).toBe("release");
    expect(again.headers.get("x-idempotent-replay")).toBe("true");
  }, 20_000);

  test.each([
    ["for good", 403, "not_the_merchant"],
    ["until the next day", 429, "payer_gas_spent"],
  ])(
    "After a refusal %s, the payment stays held without goods, and the arbiter is queried again only for the same header",
    async (_, status, code) => {
      const handler = countingHandler();
      const shop = await openShop(scene, handler);
      scene.arbiter.become({ status, body: { code, detail: "no" } });
      const payer = await buyer();
      const header = await signFor(shop, payer);
      const refused = await pay(shop, header);
      expect(refused.status).toBe(503);
      expect(await refused.json()).toEqual({ error: expect.stringMatching(/refuses to decide .* Do not sign again/) });
      const asked = scene.arbiter.forwarded.length;
      await new Promise((resolve) => setTimeout(resolve, 1500));
      expect(scene.arbiter.forwarded).toHaveLength(asked);
      expect(shop.logged).toEqual([
        expect.stringMatching(new RegExp(`^The arbiter refused the delivery for payment 0x.*${status}`)),
      ]);
      expect(await holdsBy(scene, payer.address)).toBe(1);
      scene.arbiter.become("fair");
      expect((await pay(shop, header)).headers.get("x-escrow-decision")).toBe("release");
      expect(handler).toHaveBeenCalledTimes(1);
    },
  );

  test.each([404, 503])("After a %i from the arbiter, the delivery is forwarded again", async (status) => {
    const shop = await openShop(scene, haiku);
    scene.arbiter.become({ status, body: {} });
    const { id } = await buyFrom(shop, await buyer());
    scene.arbiter.become("fair");
    await eventually(() => statusOf(scene, id), "released" as const, 10_000);
  });

  test("After a refund by the arbiter, the buyer is informed and never gets the goods", async () => {
    const shop = await openShop(scene, haiku);
    const header = await signFor(shop, await buyer());
    scene.arbiter.become({ status: 409, body: { code: "escrow_over" } });
    const first = await pay(shop, header);
    scene.arbiter.become("fair");
    for (const response of [first, await pay(shop, header)]) {
      expect(response.status).toBe(402);
      expect(await response.json()).toMatchObject({ error: expect.stringMatching(/ended before .* Sign a new one/) });
    }
    expect(shop.logged).toEqual([expect.stringMatching(/^The hold of payment 0x.*returned 409/)]);
  });
});

describe("the node", () => {
  test("With the node down before the hold, the buyer gets a 503, and the same header buys when the node is back", async () => {
    const handler = countingHandler();
    const shop = await openShop(scene, handler, { rpcUrl: node.url });
    const payer = await buyer();
    const header = await signFor(shop, payer);
    node.become(unreachable);
    const lost = await pay(shop, header);
    expect(lost.status).toBe(503);
    expect(await lost.json()).toEqual({ error: expect.stringMatching(/Do not sign again/) });
    expect(handler).not.toHaveBeenCalled();
    node.become(null);
    expect((await pay(shop, header)).status).toBe(200);
    expect(await holdsBy(scene, payer.address)).toBe(1);
  }, 30_000);

  test.each(["unheard", "heard"] as const)(
    "With the node lost when the hold is sent (%s), there is still one hold",
    async (heard) => {
      const handler = countingHandler();
      const shop = await openShop(scene, handler, { rpcUrl: node.url });
      const payer = await buyer();
      const header = await signFor(shop, payer);
      const left = leaveAt(node, "eth_sendRawTransaction", heard);
      const first = pay(shop, header);
      await left;
      expect(handler).not.toHaveBeenCalled();
      node.become(null);
      const answered = await first;
      expect([200, 503]).toContain(answered.status);
      expect((await pay(shop, header)).status).toBe(200);
      expect(handler).toHaveBeenCalledTimes(1);
      expect(await holdsBy(scene, payer.address)).toBe(1);
    },
    30_000,
  );
});

describe("several processes of one merchant", () => {
  test("One header sent to four processes together is one hold, and all return the response from the shared store", async () => {
    const store = memoryStore();
    let served = 0;
    const counting: Handler = (c) => c.json({ haiku: served++ });
    const first = await openShop(scene, counting, { store });
    const payer = await buyer();
    const header = await signFor(first, payer);
    // Each process has its own transaction queue; only the chain coordinates them.
    const shops = await Promise.all(
      Array.from({ length: 4 }, async () => {
        vi.resetModules();
        const own = await import("../../../packages/escrow/src/index.ts");
        const { Hono } = await import("hono");
        const { account } = first;
        const common = { account, rpcUrl: scene.chain.rpcUrl, price: "0.10", arbiterUrl: scene.arbiter.url, store };
        const app = new Hono().post("/haiku", own.escrowed({ ...common, log: () => undefined }, counting));
        return { fetch: (async (input, init) => app.fetch(new Request(input, init))) as typeof fetch };
      }),
    );
    const responses = await Promise.all(shops.map((shop) => pay(shop, header)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const bodies = await Promise.all(responses.map((response) => response.text()));
    expect(new Set(bodies).size).toBe(1);
    expect(await holdsBy(scene, payer.address)).toBe(1);
  }, 30_000);

  test("A hold that a stranger puts on the chain first is accepted", async () => {
    const shop = await openShop(scene, haiku);
    const stranger = await openShop(scene, haiku);
    const client = createClient({ transport: http(scene.chain.rpcUrl) });
    const front = await openShop(scene, haiku, {
      account: shop.account,
      hold: async (request) => {
        await sendFrom(client, stranger.account)(request);
        return sendFrom(client, shop.account)(request);
      },
    });
    const payer = await buyer();
    const { response } = await buyFrom(front, payer);
    expect(response.status).toBe(200);
    expect(await holdsBy(scene, payer.address)).toBe(1);
  });

  test("A merchant without gas holds nothing and returns 503", async () => {
    const handler = countingHandler();
    const shop = await openShop(scene, handler);
    await scene.chain.setBalance(shop.account.address, 0n);
    const payer = await buyer();
    const { response } = await buyFrom(shop, payer);
    expect(response.status).toBe(503);
    expect(shop.logged[0]).toMatch(/exceeds the balance|insufficient funds/i);
    expect(handler).not.toHaveBeenCalled();
    expect(await holdsBy(scene, payer.address)).toBe(0);
  }, 30_000);
});

import { gzipSync } from "node:zlib";
import { decodePaymentResponseHeader } from "@x402/core/http";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { beforeEach, expect, test } from "vitest";
import { escrowed } from "../../../packages/escrow/src/index.ts";
import { FRAMEWORKS, merchantIn } from "../../support/escrow/real-shops.ts";
import { buyFrom, newBuyer, type Pays, pay, signFor, startSaleScene, statusOf } from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";

const scene = await forFile(startSaleScene());
beforeEach(() => scene.arbiter.become("fair"));

const HAIKU = "An old silent pond";
const JSON_TYPE = { "content-type": "application/json" };

/** Answers that a buyer may bring a handler to give: all of the goods are there, and the arbiter refunds them. */
const SHAPED: readonly (readonly [string, () => Response])[] = [
  ["a field that is called error", () => Response.json({ haiku: HAIKU, error: "Basho" })],
  ["success: false", () => Response.json({ haiku: HAIKU, success: false }, { status: 201 })],
  ["malformed JSON", () => new Response(`{"haiku":"${HAIKU}","title":""Frog""}`, { headers: JSON_TYPE })],
  ["no stated type", () => new Response(new TextEncoder().encode(HAIKU), { status: 202, headers: { "x-lines": "3" } })],
  [
    "an error below gzip",
    () =>
      new Response(gzipSync(JSON.stringify({ haiku: HAIKU, error: 1 })), {
        headers: { ...JSON_TYPE, "content-encoding": "gzip" },
      }),
  ],
  ["white space", () => new Response(" \n", { headers: { "content-type": "text/plain", "x-haiku": HAIKU } })],
  ["no body", () => new Response(null, { status: 204, headers: { "set-cookie": `haiku=${HAIKU}` } })],
  ["a redirect without a body", () => new Response(null, { status: 303, headers: { location: `/?haiku=${HAIKU}` } })],
];

/** All that a client sees of a response. */
const seenOf = async (response: Response): Promise<string> =>
  JSON.stringify([...response.headers]) + Buffer.from(await response.arrayBuffer()).toString("latin1");

test.each(
  FRAMEWORKS.flatMap(([framework, open]) => SHAPED.map(([shape, answer]) => ({ framework, open, shape, answer }))),
)("$framework: goods with $shape are refunded, so they never reach the buyer", async ({ open, answer, framework }) => {
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

test.each(SHAPED)(
  "while the arbiter cannot be reached, goods with %s are kept back, because it would refund them later",
  async (_, answer) => {
    const [, open] = FRAMEWORKS[0] ?? expect.fail("There is no framework.");
    const shop = await open(await merchantIn(scene), answer);
    await shop.fetch(shop.url, { method: "POST" });
    scene.arbiter.become("down");
    const header = await signFor(shop, await newBuyer(scene.chain), shop.url);
    const undecided = await pay(shop, header, shop.url);
    expect(undecided.status).toBe(503);
    expect(await undecided.json()).toEqual({
      error: expect.stringMatching(/has not decided .* send the same header again/),
    });
    scene.arbiter.become("fair");
    const decided = await pay(shop, header, shop.url);
    expect([decided.status, decided.headers.get("x-escrow-decision")]).toEqual([500, "refund"]);
  },
);

test("a compressed response is kept back until the arbiter has decoded it, and then it is sold", async () => {
  const [, open] = FRAMEWORKS[0] ?? expect.fail("There is no framework.");
  const body = () => gzipSync(JSON.stringify({ haiku: HAIKU }));
  const shop = await open(
    await merchantIn(scene),
    () => new Response(body(), { headers: { ...JSON_TYPE, "content-encoding": "gzip" } }),
  );
  await shop.fetch(shop.url, { method: "POST" });
  scene.arbiter.become("down");
  const header = await signFor(shop, await newBuyer(scene.chain), shop.url);
  expect((await pay(shop, header, shop.url)).status).toBe(503);
  scene.arbiter.become("fair");
  const sold = await pay(shop, header, shop.url);
  expect([sold.status, await sold.json()]).toEqual([200, { haiku: HAIKU }]);
});

test("Hono: what middleware before it sets is on every answer, and a replay has its own", async () => {
  let visits = 0;
  let answer = () => Response.json({ haiku: HAIKU }, { headers: { "set-cookie": "inner=1" } });
  const app = new Hono();
  app.use(cors({ origin: "*" }), async (c, next) => {
    visits += 1;
    c.header("x-visit", String(visits));
    c.header("set-cookie", `outer=${visits}`, { append: true });
    await next();
  });
  app.use("/haiku", escrowed(await merchantIn(scene)));
  app.post("/haiku", () => answer());
  const shop = { fetch: (async (input, init) => app.fetch(new Request(input, init))) as typeof fetch };
  const hung = ({ status, headers }: Response) => [
    ...[status, headers.get("x-visit"), headers.getSetCookie()],
    headers.get("access-control-allow-origin"),
  ];
  const { response, header } = await buyFrom(shop, await newBuyer(scene.chain));
  const origin = "*";
  expect(hung(response)).toEqual([200, "2", expect.arrayContaining(["inner=1", "outer=2"]), origin]);
  const again = await pay(shop, header);
  expect(hung(again)).toEqual([200, "3", expect.arrayContaining(["inner=1", "outer=3"]), origin]);
  expect(again.headers.getSetCookie()).toHaveLength(2);
  answer = () => Response.json({ haiku: HAIKU, error: 1 }, { headers: { "set-cookie": "inner=1" } });
  const withheld = await buyFrom(shop, await newBuyer(scene.chain));
  expect(hung(withheld.response)).toEqual([500, "5", ["outer=5"], origin]);
});

test.each(FRAMEWORKS)("%s: a merchant's own error is the answer, with its status and words", async (_, open) => {
  const shop = await open(await merchantIn(scene), () => Response.json({ error: "no ink" }, { status: 418 }));
  const { response, decision } = await buyFrom(shop, await newBuyer(scene.chain), { url: shop.url });
  expect([response.status, await response.json(), decision]).toEqual([418, { error: "no ink" }, "refund"]);
});

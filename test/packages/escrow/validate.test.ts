import type { Handler } from "hono";
import { beforeEach, expect, test, vi } from "vitest";
import { type EscrowedOptions, sendFrom } from "../../../packages/escrow/src/index.ts";
import { escrowAt } from "../../../packages/escrow/src/terms.ts";
import {
  buyFrom,
  holdsBy,
  newBuyer,
  openShop,
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

test("an unpaid request with refused input gets the refusal, and no terms to sign", async () => {
  const shop = await openShop(scene, handler, { validate });
  const response = await shop.fetch(BAD, { method: "POST" });
  expect(response.status).toBe(422);
  expect(await response.json()).toEqual({ error: "A haiku has 3 lines." });
  expect(response.headers.get("payment-required")).toBeNull();
  expect((await shop.fetch(GOOD, { method: "POST" })).status).toBe(402);
});

test("a paid request with refused input holds nothing, and its payment still buys", async () => {
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

test("refused and good input with one payment at once: each gets its own answer", async () => {
  const shop = await openShop(scene, handler, { validate });
  const payer = await buyer();
  const header = await signFor(shop, payer, GOOD);
  const urls = [BAD, GOOD, BAD, GOOD];
  const answers = await Promise.all(urls.map((url) => pay(shop, header, url)));
  // Once it is held, refused input is another resource's.
  expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(2);
  for (const [at, { status }] of answers.entries()) {
    expect(urls[at] === GOOD ? [200] : [409, 422]).toContain(status);
  }
  expect([await holdsBy(scene, payer.address), handler.mock.calls.length]).toEqual([1, 1]);
});

test("the handler can read the body that validate has read", async () => {
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
    what: "one without a body",
    refuses: () => new Response(null, { status: 422 }),
    ...{ status: 422, error: "This input is refused." },
  },
  {
    what: "one that echoes too much",
    refuses: () => new Response(LARGE, { status: 400 }),
    ...{ status: 422, error: "This input is refused." },
  },
];

test.each(REFUSALS)(
  "refused input of a buyer who held the payment itself is the delivery, refunded at once: $what",
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

test("what was delivered is replayed without asking again", async () => {
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
])("a check that %s gives nothing away and holds nothing", async (_, broken) => {
  const shop = await openShop(scene, handler, { validate: broken });
  const header = await signFor(await openShop(scene, handler, { account: shop.account }), await buyer());
  for (const response of [await shop.fetch(SHOP, { method: "POST" }), await pay(shop, header)]) {
    expect(response.status).toBe(503);
    expect(await response.text()).not.toContain("haiku");
  }
  expect(shop.logged).toHaveLength(2);
  expect(handler).not.toHaveBeenCalled();
});

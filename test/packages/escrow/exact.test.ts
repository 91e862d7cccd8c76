import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { Handler } from "hono";
import type { LocalAccount } from "viem";
import { beforeEach, expect, test, vi } from "vitest";
import {
  buyFrom,
  decodeHeader,
  encodeHeader,
  holdsBy,
  newBuyer,
  openShop,
  pay,
  SHOP,
  startSaleScene,
  type TestMerchant,
} from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { broadcast } from "../../support/payments/on-chain.ts";
import { challengeOf } from "../../support/payments/requests.ts";

const scene = await forFile(startSaleScene());
const { chain } = scene;
const handler = vi.fn<Handler>();
beforeEach(() => {
  handler.mockReset().mockImplementation((c) => c.json({ haiku: "An old silent pond" }));
});

const PURSE = 1_000_000n;
const PRICE = 100_000n;
const open = (options: Parameters<typeof openShop>[2] = {}) => openShop(scene, handler, { exact: true, ...options });
const spent = async ({ address }: LocalAccount) => PURSE - (await chain.usdcBalance(address));

/**
 * Buys like an ordinary client, which does not know the escrow. With `send` false, the payment is signed but not sent.
 */
async function buyExactly(shop: Pick<TestMerchant, "fetch">, buyer: LocalAccount, { url = SHOP, send = true } = {}) {
  let header = "";
  const watched: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature") ?? "";
    return header === "" || send ? shop.fetch(request) : new Response("kept");
  };
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(buyer));
  const response = await wrapFetchWithPayment(watched, client)(url, { method: "POST" });
  return { response, header };
}

test("The exact scheme comes last and states what its buyer gives up", async () => {
  const unpaid = await (await open()).fetch(SHOP, { method: "POST" });
  const { accepts } = challengeOf({ ...unpaid, headers: unpaid.headers, text: "", body: {}, status: 402 });
  expect(accepts.map(({ scheme }) => scheme)).toEqual(["auth-capture", "commerce", "exact"]);
  expect(accepts.at(-1)?.extra.withoutEscrow).toMatch(/without a hold.*arbiter.*refund/);
  expect(await unpaid.text()).toContain("without its protection");
});

test("An ordinary client pays the merchant immediately and gets the same response again with the same header", async () => {
  const shop = await open();
  const buyer = await newBuyer(chain);
  const { response, header } = await buyExactly(shop, buyer);
  expect([response.status, await response.json()]).toEqual([200, { haiku: "An old silent pond" }]);
  expect(decodeHeader(response.headers.get("payment-response") ?? "")).toMatchObject({
    success: true,
    amount: String(PRICE),
    extensions: { "offer-receipt": { info: { receipt: expect.any(Object) } } },
  });
  expect(response.headers.get("x-escrow-decision")).toBeNull();
  expect(await chain.usdcBalance(shop.account.address)).toBe(PRICE);
  const again = await pay(shop, header);
  expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
  expect((await pay(shop, header, `${SHOP}?other`)).status).toBe(409);
  expect([await spent(buyer), handler.mock.calls.length, await holdsBy(scene, buyer.address)]).toEqual([PRICE, 1, 0]);
});

test("Ten copies of a payment sent together buy one response", async () => {
  const shop = await open();
  const buyer = await newBuyer(chain);
  const { header } = await buyExactly(shop, buyer, { send: false });
  const answers = await Promise.all(Array.from({ length: 10 }, () => pay(shop, header)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect([await spent(buyer), handler.mock.calls.length]).toEqual([PRICE, 1]);
});

test("A client that knows the escrow pays through it", async () => {
  const shop = await open();
  const { decision } = await buyFrom(shop, await newBuyer(chain), { pays: "auth-capture" });
  expect(decision).toBe("release");
});

test("A handler that fails charges nothing, and the same payment buys once the handler works", async () => {
  const shop = await open();
  const buyer = await newBuyer(chain);
  handler.mockImplementationOnce((c) => c.json({ error: "no ink" }, 500));
  const { response, header } = await buyExactly(shop, buyer);
  expect([response.status, await response.json()]).toEqual([500, { error: "no ink" }]);
  expect(response.headers.get("payment-response")).toBeNull();
  expect(await spent(buyer)).toBe(0n);
  expect((await pay(shop, header)).status).toBe(200);
  expect(await spent(buyer)).toBe(PRICE);
});

test("A payment that names another route with the same price is refused", async () => {
  const shop = await open();
  const buyer = await newBuyer(chain);
  const { header } = await buyExactly(shop, buyer, { send: false });
  const elsewhere = encodeHeader({ ...decodeHeader(header), resource: { url: SHOP.replace("haiku", "ode") } });
  expect((await pay(shop, elsewhere)).status).toBe(409);
  expect([await spent(buyer), handler.mock.calls]).toEqual([0n, []]);
  expect((await pay(shop, header)).status).toBe(200);
});

test("Refused input is not charged", async () => {
  let isValid = true;
  const shop = await open({ validate: () => (isValid ? null : "A haiku has 3 lines.") });
  const buyer = await newBuyer(chain);
  const { header } = await buyExactly(shop, buyer, { send: false });
  isValid = false;
  expect((await pay(shop, header)).status).toBe(422);
  expect([await spent(buyer), handler.mock.calls.length]).toEqual([0n, 0]);
});

test.each(["before its sale", "while the handler runs"])(
  "A payment that a stranger submits %s still buys its response",
  async (when) => {
    const shop = await open();
    const buyer = await newBuyer(chain);
    const { header } = await buyExactly(shop, buyer, { send: false });
    const { authorization: a, signature } = decodeHeader(header).payload;
    const times = { validAfter: BigInt(a.validAfter), validBefore: BigInt(a.validBefore) };
    const submit = () => broadcast(chain, { authorization: { ...a, ...times, value: BigInt(a.value) }, signature });
    if (when === "before its sale") await submit();
    else
      handler.mockImplementationOnce(async (c) => {
        await submit();
        return c.json({ haiku: "An old silent pond" });
      });
    expect((await pay(shop, header)).status).toBe(200);
    expect([await spent(buyer), handler.mock.calls.length]).toEqual([PRICE, 1]);
  },
);

test.each([
  ["another payee", { to: `0x${"11".repeat(20)}` }, "authorization.to"],
  ["a lower amount", { value: "99999" }, "authorization.value"],
  ["an expired window", { validBefore: "1" }, "authorization.validBefore"],
  ["a window of days", { validBefore: "99999999999" }, "authorization.validBefore"],
  ["a nonce that was not signed", { nonce: `0x${"22".repeat(32)}` }, "cannot be made"],
])("A payment with %s gets a 402 that names the fault", async (_, fields, why) => {
  const shop = await open();
  const { header } = await buyExactly(shop, await newBuyer(chain), { send: false });
  const payment = decodeHeader(header);
  Object.assign(payment.payload.authorization, fields);
  const refused = await pay(shop, encodeHeader(payment));
  expect([refused.status, await refused.json()]).toMatchObject([402, { error: expect.stringContaining(why) }]);
  expect(handler).not.toHaveBeenCalled();
});

test("A shop that does not offer the exact scheme does not accept it", async () => {
  const { header } = await buyExactly(await open(), await newBuyer(chain), { send: false });
  const refused = await pay(await open({ exact: false }), header);
  expect([refused.status, await refused.json()]).toMatchObject([
    402,
    { error: expect.stringContaining("accepted.scheme") },
  ]);
});

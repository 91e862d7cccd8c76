import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from "@x402/core/http";
import type { Handler } from "hono";
import { getAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { escrowed, memoryStore, paymentId, readPayment } from "../../../packages/escrow/src/index.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import {
  buyFrom,
  decodeHeader,
  encodeHeader,
  haiku,
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

const handler = vi.fn<Handler>(haiku);

const scene = await forFile(startSaleScene());
const shop = await openShop(scene, handler);

beforeEach(() => {
  handler.mockReset().mockImplementation(haiku);
  scene.arbiter.become("fair");
});

const buyer = () => newBuyer(scene.chain);
const errorOf = async (response: Response): Promise<string> => {
  const { error } = (await response.json()) as { error: string };
  return error;
};

describe("the offer", () => {
  test("An unpaid request gets the terms of both contracts, in version 2 only, and does not reach the handler", async () => {
    const response = await shop.fetch(SHOP, { method: "POST" });
    expect([response.status, response.headers.get("cache-control")]).toEqual([402, "no-store"]);
    expect(await response.json()).toEqual({
      x402Version: 1,
      error: expect.stringMatching(/escrow.*version 2/),
      accepts: [],
    });
    const terms = decodePaymentRequiredHeader(response.headers.get("payment-required") ?? "");
    expect(terms).toMatchObject({
      x402Version: 2,
      resource: { url: SHOP },
      accepts: [
        { scheme: "auth-capture", amount: "100000", extra: { captureAuthorizer: getAddress(scene.operator.address) } },
        { scheme: "commerce", amount: "100000", extra: { escrowAddress: getAddress(scene.escrow.address) } },
      ],
    });
    expect(handler).not.toHaveBeenCalled();
  });

  test("There is no offer while the trust service is down, and one as soon as it is back", async () => {
    const lost = await openShop(scene, handler, { arbiterUrl: "http://127.0.0.1:9" });
    const response = await lost.fetch(SHOP, { method: "POST" });
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    // The caller has signed nothing yet.
    expect(await response.text()).not.toMatch(/not sign again|same header/i);
    expect(lost.logged).toHaveLength(1);
    const pinned = await openShop(scene, handler, { arbiterUrl: "http://127.0.0.1:9", escrow: scene.escrow.address });
    expect((await pinned.fetch(SHOP, { method: "POST" })).status).toBe(402);
  });

  test("An invalid price and a merchant without a node are refused at start", async () => {
    for (const price of ["0", "0.0000001", "1,00", "1e3", 0n, -1n, 2n ** 120n])
      await expect(openShop(scene, handler, { price }), String(price)).rejects.toThrow(/^An amount must be/);
    await expect(openShop(scene, handler, { price: 9_999n })).rejects.toThrow(/holds at least 0\.01 USDC/);
    const { rpcUrl: _, ...rest } = { account: shop.account, rpcUrl: "", price: "1", arbiterUrl: "http://x" };
    expect(() => escrowed(rest)).toThrow(/needs rpcUrl or client/);
  });
});

describe("a sale", () => {
  test("Good goods are held before the handler runs, delivered, and released less 1%", async () => {
    const payer = await buyer();
    handler.mockImplementation(async (c) => {
      expect(await holdsBy(scene, payer.address)).toBe(1);
      c.header("x-poet", "Bashō".normalize("NFD").replace(/[^\x20-\x7e]/g, ""));
      return c.json({ haiku: "An old silent pond" });
    });
    const { response, id, decision } = await buyFrom(shop, payer);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ haiku: "An old silent pond" });
    expect(response.headers.get("x-poet")).toBe("Basho");
    expect({ decision, logged: shop.logged }).toEqual({ decision: "release", logged: [] });
    expect(response.headers.get("x-idempotent-replay")).toBeNull();
    expect(response.headers.get("cache-control")).toBe("no-store");
    const settled = decodePaymentResponseHeader(response.headers.get("payment-response") ?? "");
    expect(settled).toMatchObject({ success: true, network: "eip155:8453", payer: payer.address });
    const receipt = await scene.chain.client.getTransactionReceipt({ hash: settled.transaction as `0x${string}` });
    expect(receipt).toMatchObject({ status: "success", to: scene.escrow.address });
    const { paymentInfo, ...forwarded } = scene.arbiter.forwarded.at(-1) ?? {};
    expect(paymentInfo).toMatchObject({ payer: payer.address, receiver: shop.account.address, maxAmount: "100000" });
    expect(Object.keys(forwarded)).toEqual(["response", "signature", "delivery_version"]);
    await eventually(() => statusOf(scene, id), "released" as const);
    expect(await scene.chain.usdcBalance(shop.account.address)).toBe(99_000n);
    expect(await scene.chain.usdcBalance(payer.address)).toBe(900_000n);
  });

  test("The middleware also sells the response of the route's own handler", async () => {
    const { app, ...rest } = await openShop(scene, undefined);
    app.post("/haiku", (c) => c.json({ haiku: "from the next handler" }, 201));
    const { response } = await buyFrom(rest, await buyer());
    expect({ status: response.status, logged: rest.logged }).toEqual({ status: 201, logged: [] });
    expect(await response.json()).toEqual({ haiku: "from the next handler" });
    expect(response.headers.get("content-type")).toBe("application/json");
  });

  test("A binary response is delivered and evaluated unchanged", async () => {
    const bytes = Uint8Array.from({ length: 1000 }, (_, index) => index % 256);
    handler.mockImplementation((c) => c.body(bytes, 200, { "content-type": "image/png", "set-cookie": "a=1" }));
    const { response, decision } = await buyFrom(shop, await buyer());
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
    expect(decision).toBe("release");
    const { response: forwarded } = scene.arbiter.forwarded.at(-1) as { response: Record<string, unknown> };
    expect(forwarded).toEqual({
      status: 200,
      headers: { "content-type": "image/png" },
      body_base64: Buffer.from(bytes).toString("base64"),
    });
  });

  test.each([
    ["with a byte order mark", "\ufeff{}"],
    ["with characters of four bytes", JSON.stringify({ leaf: "🍁" })],
  ])("A text %s is forwarded byte for byte", async (_, text) => {
    handler.mockImplementation((c) => c.body(text, 200, { "content-type": "text/plain" }));
    const { response, decision } = await buyFrom(shop, await buyer());
    expect(Buffer.from(await response.arrayBuffer()).toString()).toBe(text);
    expect(decision).toBe("release");
  });

  test("A response of 256 KiB is delivered, and one byte more becomes a 500", async () => {
    const forward = async () => "release" as const;
    const large = await openShop(scene, handler, { forward });
    handler.mockImplementation((c) => c.body("x".repeat(256 * 1024)));
    expect((await buyFrom(large, await buyer())).response.status).toBe(200);
    handler.mockImplementation((c) => c.body("x".repeat(256 * 1024 + 1)));
    const { response } = await buyFrom(large, await buyer());
    expect(response.status).toBe(500);
    expect(await errorOf(response)).toMatch(/larger than 262144 bytes/);
  });
});

describe("refused payments", () => {
  test.each([
    ["no base64", "%%%"],
    ["no payload", encodeHeader({ x402Version: 2 })],
    ["too many bytes", "A".repeat(16_385)],
  ])("A header with %s gets a 400", async (_, header) => {
    const response = await pay(shop, header);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatch(/^PAYMENT-SIGNATURE/);
  });

  test.each([
    ["paymentInfo.receiver", (p) => ({ ...p, receiver: p.payer })],
    ["authorization.nonce", (p) => ({ ...p, salt: "1" })],
  ] as [string, (info: Record<string, unknown>) => Record<string, unknown>][])(
    "A payment with another %s gets a 402 with the expected value",
    async (field, change) => {
      const payer = await buyer();
      const payment = decodeHeader(await signFor(shop, payer));
      payment.payload.paymentInfo = change(payment.payload.paymentInfo);
      const response = await pay(shop, encodeHeader(payment));
      expect(response.status).toBe(402);
      const { error } = decodePaymentRequiredHeader(response.headers.get("payment-required") ?? "");
      expect(error).toContain(`${field} is `);
      expect(error).toContain(", expected ");
      expect(handler).not.toHaveBeenCalled();
      expect(await holdsBy(scene, payer.address)).toBe(0);
    },
  );

  test("A wrong signature and a payer without money each get a 402 with the reason", async () => {
    const payment = decodeHeader(await signFor(shop, await buyer()));
    payment.payload.signature = `0x${"11".repeat(65)}`;
    expect(await errorOf(await pay(shop, encodeHeader(payment)))).toMatch(/^0x\w{40} did not sign these terms/);
    const poor = await newBuyer(scene.chain, 99_999n);
    const { response } = await buyFrom(shop, poor);
    expect(response.status).toBe(402);
    expect(await errorOf(response)).toMatch(/ERC20: transfer amount exceeds balance/);
    expect(handler).not.toHaveBeenCalled();
  });
});

describe("a repeated payment", () => {
  test("It gets the response that another process stored after this one looked", async () => {
    const store = memoryStore();
    const account = privateKeyToAccount(generatePrivateKey());
    const first = await openShop(scene, handler, { account, store });
    const { header, id, response } = await buyFrom(first, await buyer());
    await eventually(() => statusOf(scene, id), "released" as const);
    const looked = vi.fn(store.get).mockResolvedValueOnce(null);
    const other = await openShop(scene, handler, { account, store: { ...store, get: looked } });
    const again = await pay(other, header);
    expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    expect(await again.text()).toBe(await response.text());
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test("Ten buyers together are ten holds from one account", async () => {
    const payers = [];
    for (let count = 0; count < 10; count += 1) payers.push(await buyer());
    const sales = await Promise.all(payers.map((payer) => buyFrom(shop, payer)));
    expect(sales.map(({ response }) => response.status)).toEqual(Array(10).fill(200));
    expect(handler).toHaveBeenCalledTimes(10);
  });

  test("It buys no other resource", async () => {
    const { header } = await buyFrom(shop, await buyer());
    const response = await pay(shop, header, `${SHOP}?another`);
    expect(response.status).toBe(409);
    expect(await errorOf(response)).toMatch(/already bought POST \/haiku\.$/);
  });

  test("A payment that names another route with the same price gets a 409, and nothing is held", async () => {
    const payer = await buyer();
    const signed = decodeHeader(await signFor(shop, payer));
    for (const url of [SHOP.replace("haiku", "ode"), 7, {}]) {
      const response = await pay(shop, encodeHeader({ ...signed, resource: { url } }));
      expect([response.status, await errorOf(response)]).toEqual([409, expect.stringMatching(/a different resource/)]);
    }
    expect(await holdsBy(scene, payer.address)).toBe(0);
    const { resource: _, ...unnamed } = signed;
    expect((await pay(shop, encodeHeader(unnamed))).status).toBe(200);
  });

  test("Somebody who read the terms from the chain does not get the response", async () => {
    const { header } = await buyFrom(shop, await buyer());
    const payment = decodeHeader(header);
    payment.payload.signature = `0x${"11".repeat(64)}1b`;
    expect((await pay(shop, encodeHeader(payment))).status).toBe(402);
  });

  test("After a restart that lost the response, a released payment gets a 409 and a refunded one a 402", async () => {
    const good = await buyFrom(shop, await buyer());
    await eventually(() => statusOf(scene, good.id), "released" as const);
    handler.mockImplementation((c) => c.body(null, 204));
    const bad = await buyFrom(shop, await buyer());
    await eventually(() => statusOf(scene, bad.id), "refunded" as const);
    const restarted = await openShop(scene, handler, { account: shop.account, store: memoryStore() });
    expect((await pay(restarted, good.header)).status).toBe(409);
    const refunded = await pay(restarted, bad.header);
    expect(refunded.status).toBe(402);
    expect(await errorOf(refunded)).toMatch(/was refunded to its payer; sign a new one/);
    expect(handler).toHaveBeenCalledTimes(2);
  });
});

test.each([
  ["19:59 before it is refundable", 1199, 402, 0],
  ["20:01 before it is refundable", 1201, 200, 1],
])("A hold that arrives undelivered %s (%i s) gets a %i", async (...[_, secondsBefore, status, calls]) => {
  const header = await signFor(shop, await buyer());
  const { chain, escrow } = scene;
  const { info, signature } = presentedIn(header);
  const hash = await chain.client.writeContract({
    account: devAccount(2),
    address: escrow.address,
    abi: escrowAbi,
    functionName: "authorize",
    args: [info, info.maxAmount, escrow.address, signature],
  });
  await chain.client.waitForTransactionReceipt({ hash });
  const id = paymentId({ chainId: chain.network.chainId, escrow: escrow.address }, info);
  const { refundableFrom } = await readPayment(chain.client, escrow.address, id);
  vi.useFakeTimers({ toFake: ["Date"], now: (refundableFrom - secondsBefore) * 1000 });
  const response = await pay(shop, header).finally(() => vi.useRealTimers());
  expect(response.status).toBe(status);
  expect(handler).toHaveBeenCalledTimes(calls);
  if (status === 402)
    expect(await errorOf(response)).toMatch(/Anyone can refund it to its payer starting at 2.*Sign a new one/);
});

test("The response memory is bounded: the oldest decided response is dropped first, then the oldest", async () => {
  const store = memoryStore({ deliveries: 3, bytes: 10 });
  const kept = (size: number) => ({
    status: 200,
    headers: [],
    body: new Uint8Array(size),
    resource: "GET /",
    transaction: "0x" as const,
    decision: "pending" as const,
  });
  const known = async () =>
    (await Promise.all(["0x1", "0x2", "0x3", "0x4", "0x5"].map((id) => store.get(id as "0x1")))).map(
      (it) => it !== null,
    );
  await store.keep("0x1", kept(1));
  await store.keep("0x2", kept(1));
  await store.decide("0x2", "release");
  await store.keep("0x3", kept(1));
  expect(await known()).toEqual([true, true, true, false, false]);
  await store.keep("0x4", kept(1));
  expect(await known()).toEqual([true, false, true, true, false]);
  await store.keep("0x5", kept(9));
  expect(await known()).toEqual([false, false, false, true, true]);
  expect((await store.keep("0x5", kept(2))).body).toHaveLength(9);
});

import type { Handler } from "hono";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { memoryStore, paymentId, readPayment } from "../../../packages/escrow/src/index.ts";
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
});

const buyer = () => newBuyer(scene.chain);
const errorOf = async (response: Response): Promise<string> => {
  const { error } = (await response.json()) as { error: string };
  return error;
};

describe("the same payment again", () => {
  test("gets the same response, marked as a replay, whatever became of the payment", async () => {
    const { header, id, response } = await buyFrom(shop, await buyer());
    await eventually(() => statusOf(scene, id), "released" as const);
    const again = await pay(shop, header);
    expect(again.headers.get("x-idempotent-replay")).toBe("true");
    expect(again.headers.get("payment-response")).toBe(response.headers.get("payment-response"));
    expect(await again.text()).toBe(await response.text());
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test("ten at once are one hold and one call of the handler", async () => {
    const payer = await buyer();
    const header = await signFor(shop, payer);
    const responses = await Promise.all(Array.from({ length: 10 }, () => pay(shop, header)));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(responses.filter(({ headers }) => headers.get("x-idempotent-replay") === null)).toHaveLength(1);
    expect(handler).toHaveBeenCalledTimes(1);
    expect(await holdsBy(scene, payer.address)).toBe(1);
  });

  test("gets the response that another process stored, and was paid for, since this one looked", async () => {
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
    expect(looked).toHaveBeenCalledTimes(2);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test("ten buyers at once are ten holds from one account", async () => {
    const payers = [];
    for (let count = 0; count < 10; count += 1) payers.push(await buyer());
    const sales = await Promise.all(payers.map((payer) => buyFrom(shop, payer)));
    expect(sales.map(({ response }) => response.status)).toEqual(Array(10).fill(200));
    expect(handler).toHaveBeenCalledTimes(10);
  });

  test("buys nothing else", async () => {
    const { header } = await buyFrom(shop, await buyer());
    const response = await pay(shop, header, `${SHOP}?another`);
    expect(response.status).toBe(409);
    expect(await errorOf(response)).toMatch(/already bought POST \/haiku\.$/);
  });

  test("is not given to somebody who read the terms from the chain", async () => {
    const { header } = await buyFrom(shop, await buyer());
    const payment = decodeHeader(header);
    payment.payload.signature = `0x${"11".repeat(64)}1b`;
    expect((await pay(shop, encodeHeader(payment))).status).toBe(402);
  });

  test("after a restart that lost the response: 409 when it was released, 402 when it was refunded", async () => {
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
  ["19:59 before anybody may refund it", 1199, 402, 0],
  ["two seconds earlier", 1201, 200, 1],
])("a hold that comes undelivered, %s", async (...[_, secondsBefore, status, calls]) => {
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

test("the memory of responses is bounded: the oldest decided one goes first, then the oldest", async () => {
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

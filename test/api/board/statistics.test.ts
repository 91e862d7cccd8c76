import { expect, test } from "vitest";
import { ago, boardScene, NOON, type Seed } from "../../support/board.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";

const scene = boardScene();

/** A basic PASS of the day before for each of `count` wallets, unless the fields say otherwise. */
const seeds = (from: number, count: number, fields: Partial<Seed>): readonly Seed[] =>
  Array.from({ length: count }, (_, index) => ({ wallet: from + index, issuedAt: ago(1), ...fields }));

test("statistics count what stands, by test and result, by wallet and by day", async () => {
  const [reversed = ""] = await scene.seeder.add(
    { wallet: 99, issuedAt: ago(1) },
    ...seeds(1, 6, {}),
    ...seeds(1, 6, { issuedAt: ago(2) }),
    ...seeds(7, 5, { result: "fail" }),
    ...seeds(20, 8, { issuedAt: ago(45), product: "suite" }),
  );
  await scene.seeder.reverse(reversed);
  const { body } = await scene.get("/stats");
  expect(body).toMatchObject({
    counted_at: NOON.toISOString(),
    anonymity: { minimum_wallets: 5, note: expect.any(String) },
    wallets: { tested: 19, certified_now: 6 },
    certificates: 25,
    products: expect.arrayContaining([
      expect.objectContaining({ product: "basic", certificates: 17, passed: 12, failed: 5, failure_share: 0.2941 }),
      expect.objectContaining({ product: "suite", certificates: 8, passed: 8, failed: 0, failure_share: 0 }),
    ]),
    payments: [
      { network: "eip155:8453", network_key: "base", settled: 0, volume_atomic: "0", volume: "0.00", asset: "USDC" },
      { network: "eip155:84532", settled: 0 },
    ],
    window_days: 30,
  });
  const days = body.days as readonly { day: string; certificates: number | null }[];
  expect(days).toHaveLength(30);
  expect([days[0]?.day, days.at(-1)?.day]).toEqual(["2026-10-23", "2026-11-21"]);
  expect(days.slice(-4)).toEqual([
    { day: "2026-11-18", certificates: 0 },
    { day: "2026-11-19", certificates: 6 },
    { day: "2026-11-20", certificates: 11 },
    { day: "2026-11-21", certificates: 0 },
  ]);
});

test("statistics withhold the parts that are of four wallets and show those of five, and the total from the first on", async () => {
  const of = async () => {
    const { body } = await scene.get("/stats");
    const products = body.products as readonly Record<string, unknown>[];
    const days = body.days as readonly { certificates: unknown }[];
    return {
      total: body.certificates,
      basic: [products[0]?.certificates, products[0]?.passed, products[0]?.failed],
      suite: products[1]?.certificates,
      days: [days[27]?.certificates, days[28]?.certificates],
    };
  };
  await scene.seeder.add(...seeds(1, 4, {}));
  const four = { total: 4, basic: [null, null, null], suite: null, days: [null, null] };
  expect(await of()).toEqual(four);
  await scene.seeder.add(...seeds(5, 1, {}));
  scene.clock = new Date(NOON.getTime() + 59_999);
  expect(await of()).toEqual(four);
  scene.clock = new Date(NOON.getTime() + 60_000);
  await expect.poll(of).toEqual({ total: 5, basic: [5, 5, 0], suite: 0, days: [0, 5] });
  await scene.seeder.add(...seeds(6, 1, { issuedAt: ago(45) }));
  scene.clock = new Date(NOON.getTime() + 120_000);
  await expect.poll(of).toEqual({ total: 6, basic: [6, 6, 0], suite: 0, days: [null, 5] });
});

test("statistics count payments and their volume from the first payer on, each network apart", async () => {
  scene.clock = null;
  const buy = async () => post(`${scene.service.url}/test/basic`, v2(await signPayment(await newPayer(scene.chain))));
  expect((await buy()).status).toBe(200);
  const of = async () => (await scene.get("/stats")).body.payments;
  const testMoney = { network_key: "base-sepolia", settled: 0, volume_atomic: "0" };
  expect(await of()).toMatchObject([
    { network_key: "base", settled: 1, volume_atomic: "250000", volume: "0.25" },
    testMoney,
  ]);
  expect((await buy()).status).toBe(200);
  scene.clock = new Date(Date.now() + 600_000);
  expect(await of()).toMatchObject([
    { network_key: "base", settled: 2, volume_atomic: "500000", volume: "0.50" },
    testMoney,
  ]);
});

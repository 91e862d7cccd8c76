import pg from "pg";
import { describe, expect, test } from "vitest";
import { type Count, withhold } from "../../../api/board/board.ts";
import { createCounting, createTotalsReader } from "../../../api/board/store.ts";
import { formatUsd } from "../../../api/platform/money.ts";
import { ago, boardScene, type ListedAgent, NOON, type Seed } from "../../support/board.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";

const scene = boardScene();

/** A basic PASS of the day before for each of `count` wallets, overridden by `fields`. */
const seeds = (from: number, count: number, fields: Partial<Seed>): readonly Seed[] =>
  Array.from({ length: count }, (_, index) => ({ wallet: from + index, issuedAt: ago(1), ...fields }));

test("Statistics count certificates that are not reversed, by test and result, by wallet, and by day", async () => {
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

test("Statistics withhold parts with four wallets, show parts with five, and show the total from the first certificate on", async () => {
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

test("Statistics count payments and their volume per network from the first payer on", async () => {
  scene.clock = null;
  const buy = async () => post(`${scene.service.url}/test/basic`, v2(await signPayment(await newPayer(scene.chain))));
  expect((await buy()).status).toBe(200);
  const of = async () => (await scene.get("/stats")).body.payments;
  const testMoney = { network_key: "base-sepolia", settled: 0, volume_atomic: "0" };
  expect(await of()).toMatchObject([
    { network_key: "base", settled: 1, volume_atomic: String(PRICES.basic), volume: formatUsd(PRICES.basic) },
    testMoney,
  ]);
  expect((await buy()).status).toBe(200);
  scene.clock = new Date(Date.now() + 600_000);
  expect(await of()).toMatchObject([
    { network_key: "base", settled: 2, volume_atomic: String(2n * PRICES.basic), volume: formatUsd(2n * PRICES.basic) },
    testMoney,
  ]);
});

describe("withholding of small parts", () => {
  const of = (...wallets: number[]): readonly Count[] => wallets.map((one) => ({ wallets: one, certificates: one }));

  describe("parts of a published total", () => {
    test.each([
      ["no part, if each has five wallets or none,", of(5, 0, 6, 0), []],
      ["a part with four wallets, and every part with zero,", of(9, 4, 0, 0), [1, 2, 3]],
      ["a part with one wallet, and the smallest other if none is zero,", of(9, 1, 7, 8), [1, 2]],
      ["each of two parts with few wallets, and no other,", of(9, 1, 7, 4), [1, 3]],
      ["every part, if there is only one wallet,", of(1, 0, 0, 0), [0, 1, 2, 3]],
      ["no part of an empty total", of(0, 0), []],
    ])("%s is withheld", (_, parts, hidden) => {
      expect(withhold(parts).flatMap((one, index) => (one ? [index] : []))).toEqual(hidden);
    });

    test("A part is withheld if the rest of the total has few wallets", () => {
      expect(withhold(of(7, 9, 8), { wallets: 4, certificates: 4 })).toEqual([true, false, true]);
      expect(withhold(of(7, 9, 8), { wallets: 5, certificates: 5 })).toEqual([false, false, false]);
    });

    /** Every possible part: a number of certificates from at most that many wallets. */
    const parts = (most: number): readonly Count[] =>
      Array.from({ length: most + 1 }, (_, certificates) =>
        Array.from({ length: Math.min(certificates, 6) || 1 }, (_, fewer) => ({
          certificates,
          wallets: certificates === 0 ? 0 : fewer + 1,
        })),
      ).flat();

    test.each([
      ["with only shown parts", [0]],
      ["with other parts that are never shown", [0, 1, 5]],
    ])("No withheld part can be computed from the total, the wallets, and the shown parts, %s", (_, rest) => {
      const seen = new Map<string, Set<number>[]>();
      const [most, some] = [11, parts(11)];
      for (const first of some)
        for (const second of some)
          for (const third of some)
            for (const more of rest) {
              const total = first.certificates + second.certificates + third.certificates + more;
              if (total > most) continue;
              const world = [first, second, third];
              const wallets = first.wallets + second.wallets + third.wallets + more;
              const hidden = withhold(world, { wallets: more, certificates: more });
              const shown = world.map(({ certificates }, index) => (hidden[index] ? "?" : certificates));
              const values = seen.get(`${total} ${wallets} ${shown}`) ?? world.map(() => new Set<number>());
              for (const [index, { certificates }] of world.entries()) values[index]?.add(certificates);
              seen.set(`${total} ${wallets} ${shown}`, values);
            }
      const computable = [...seen].filter(([shown, values]) =>
        values.some((possible, index) => shown.split(/[ ,]/)[index + 2] === "?" && possible.size < 2),
      );
      expect(seen.size).toBeGreaterThan(100);
      expect(computable.map(([shown]) => shown)).toEqual([]);
    });
  });
});

/** Follows `next` from the first page to the last. */
async function walk(start: string, between: (page: number) => Promise<unknown>): Promise<readonly number[]> {
  const seen: number[] = [];
  let next: string | null = start;
  for (let page = 1; next !== null; page++) {
    const answer = await scene.get(next);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("link")).toBe(answer.body.next === null ? null : `<${answer.body.next}>; rel="next"`);
    seen.push(...(answer.body.agents as readonly ListedAgent[]).map(({ wallet }) => Number(wallet)));
    next = answer.body.next as string | null;
    await between(page);
  }
  return seen;
}

describe("pages of the board", () => {
  const COUNT = 40;
  const all = Array.from({ length: COUNT }, (_, index) => index + 1);
  /** Adds wallets 1 to 40, newest first, three to each instant. */
  const seedAll = () =>
    scene.seeder.add(...all.map((wallet) => ({ wallet, issuedAt: ago(1 + Math.floor(wallet / 3)) })).toReversed());

  test.for([7, 39, 40])("Pages of %d list every agent once, in order", async (limit) => {
    await seedAll();
    const pages: number[] = [];
    const seen = await walk(`/board?limit=${limit}`, async (page) => pages.push(page));
    expect(seen.toSorted((a, b) => a - b)).toEqual(all);
    expect(seen.map((wallet) => Math.floor(wallet / 3))).toEqual(
      all.map((wallet) => Math.floor(wallet / 3)).toSorted((a, b) => a - b),
    );
    expect(pages).toHaveLength(Math.ceil(COUNT / limit));
  });

  test("While certificates arrive for known and new wallets, the pages list each agent once", async () => {
    await seedAll();
    const seen = await walk("/board?limit=6", (page) =>
      scene.seeder.add(
        { wallet: 100 + page, issuedAt: ago(0) },
        { wallet: 3, issuedAt: ago(0.5) },
        { wallet: COUNT - page, issuedAt: ago(0) },
        { wallet: COUNT - page, issuedAt: ago(0), product: "suite" },
      ),
    );
    expect(seen.toSorted((a, b) => a - b)).toEqual(all);
    expect((await scene.wallets("?limit=100")).toSorted((a, b) => a - b)).toEqual([
      ...all,
      101,
      102,
      103,
      104,
      105,
      106,
      107,
    ]);
  });

  test("Wallets that fail or are reversed during the walk are left out", async () => {
    const ids = await seedAll();
    const seen = await walk("/board?limit=10", async (page) => {
      if (page > 1) return;
      await scene.seeder.add({ wallet: 38, issuedAt: ago(0), result: "fail" });
      await scene.seeder.reverse(ids[COUNT - 39] ?? "");
    });
    expect(seen.toSorted((a, b) => a - b)).toEqual(all.filter((wallet) => wallet !== 38 && wallet !== 39));
  });

  test("`next` keeps the capability, the limit, and the format of the request", async () => {
    await seedAll();
    const { body } = await scene.get("/board?capability=can_pay&limit=5&format=json");
    const next = new URL(String(body.next));
    expect(Object.fromEntries(next.searchParams)).toEqual({
      capability: "can_pay",
      limit: "5",
      format: "json",
      cursor: expect.stringMatching(/^[\w-]+$/),
    });
    next.searchParams.set("capability", "full_suite");
    expectProblem(await scene.get(next.href), 400, "malformed_request");
  });
});

test.for([
  ["limit=0", "from 1 to 100"],
  ["limit=101", "from 1 to 100"],
  ["cursor=nonsense", "come from `next`"],
  ["capability=flying", "one of can_pay"],
] as const)("/board?%s is a 400 that names the valid values", async ([query, expected]) => {
  const answer = await scene.get(`/board?${query}`);
  expectProblem(answer, 400, "malformed_request");
  expect(answer.body.detail).toContain(expected);
});

test("The counting job folds all changes into the totals without changing a figure", async () => {
  scene.clock = null;
  const today = new Date();
  await scene.seeder.add(...seeds(1, 6, { issuedAt: today }), ...seeds(7, 5, { issuedAt: today, result: "fail" }));
  const pool = new pg.Pool({ connectionString: scene.service.database.apiUrl, max: 1 });
  const totals = () => createTotalsReader(pool).totals(new Date(), today);
  const before = await totals();
  const rows = async (table: string) => Number((await pool.query(`SELECT count(*) FROM ${table}`)).rows[0].count);
  expect(await rows("counter_change")).toBeGreaterThan(20);
  for (let run = 0; run < 2; run++) {
    await createCounting(pool)();
    expect([await rows("certificate_change"), await rows("counter_change")]).toEqual([0, 0]);
    expect(await totals()).toEqual(before);
  }
  expect(before.wallets).toEqual({ tested: 11, certified: 6 });
  await pool.end();
});

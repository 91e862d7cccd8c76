import { randomBytes, randomUUID } from "node:crypto";
import fc from "fast-check";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test } from "vitest";
import { bytes, connect } from "../../../api/platform/db/connection.ts";
import { createExamStore } from "../../../api/sellers/exam-store.ts";
import { createExamWork } from "../../../api/sellers/exam-work-store.ts";
import { examClock } from "../../../api/sellers/network-health.ts";
import { createGrantStore } from "../../../api/sellers/orders-store.ts";
import { endOfPayments, type WatchedPayment } from "../../../api/sellers/payment-end.ts";
import { EXAM_PRICE, mostSpent } from "../../../api/sellers/products.ts";
import { createCorrections } from "../../../api/sellers/published/store.ts";
import type { ExamOrder } from "../../../api/sellers/record.ts";
import { createExamRunner, type RunnerParts } from "../../../api/sellers/run-exam.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/ledger.ts";
import { httpTransport } from "../../../packages/seller-check/src/http-transport.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { SELLERS_WALLET, sampleOrder, sampleResult, storeExam, storePurchase } from "../../support/sellers/samples.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

// Exams that cannot be held because the chain is unreachable or the code fails.

const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl));
const owner = await forFile(connectOwner(database));

beforeEach(async () => {
  await owner.query("DELETE FROM seller_exam_work");
  await owner.query("DELETE FROM seller_exam_open");
});

const away = () => Promise.reject(new Error("the node is away"));
const broken = () => {
  throw new Error("a bug");
};

const runner = (minutesLater: number, over: Partial<RunnerParts>) =>
  createExamRunner({
    store: createExamStore(pool),
    work: createExamWork(pool),
    visitor: { visit: broken, resolves: away },
    ledger: { network: "eip155:8453", mayLag: true, block: away, now: away, read: away, transfer: away, hold: away },
    head: away,
    payer: privateKeyToAccount(generatePrivateKey()),
    account: { address: `0x${"ee".repeat(20)}`, balance: away },
    refunds: { send: away, finalView: away },
    baseUrl: "https://trust.example",
    daily: 1_000_000n,
    now: () => new Date(Date.now() + minutesLater * 60_000),
    sleep: away,
    elapsed: () => 0,
    every: () => () => undefined,
    log: { warn: () => undefined },
    ...over,
  });

async function ordered(over: Partial<ExamOrder> = {}): Promise<ExamOrder> {
  const order = sampleOrder({
    origin: `https://${randomBytes(6).toString("hex")}.example`,
    orderedAt: new Date(),
    ...over,
  });
  for (const { text, values } of createExamStore(pool).adding(order)) await pool.query(text, [...values]);
  return order;
}

/**
 * Runs one try after the given number of earlier tries and minutes, including the refund of an exam that ends. Returns
 * the note of the exam's end and the number of remaining work rows.
 */
async function tried({ id }: ExamOrder, tries: { after: number; minutes: number; over?: Partial<RunnerParts> }) {
  await owner.query("UPDATE seller_exam_work SET due_at = '-infinity', attempts = $1", [tries.after]);
  const running = runner(tries.minutes, tries.over ?? {});
  expect(await running.runDue()).toBeGreaterThan(0);
  await running.idle();
  const { rowCount: left } = await owner.query("SELECT FROM seller_exam_work WHERE exam = $1", [id]);
  return { note: (await createExamStore(pool).get(id))?.result?.note ?? null, left };
}

const SIGNED = `INSERT INTO seller_exam_signature (nonce, exam, run, pay_to, value, valid_after, valid_before, cost)
  VALUES ($1, $2, $3, $4, 1, 0, 1, 1)`;
const sign = ({ id, payTo }: ExamOrder) => pool.query(SIGNED, [randomBytes(32), id, randomUUID(), bytes(payTo)]);

const OWED = /buyer gets back/;
const NOT_OWED = /nothing is paid back/;
const BUG = {
  account: { address: `0x${"ee".repeat(20)}`, balance: async () => 1_000_000n } as const,
  ledger: { now: async () => Date.now() / 1_000 + 31 * 60 } as RunnerParts["ledger"],
};

test.each<[string, { runs: number; over: Partial<RunnerParts> }, { note: RegExp; left: number }]>([
  ["our chain before anything was signed", { runs: 0, over: {} }, { note: OWED, left: 1 }],
  ["our chain after one run had signed", { runs: 1, over: {} }, { note: OWED, left: 1 }],
  ["a bug before anything was signed", { runs: 0, over: BUG }, { note: NOT_OWED, left: 0 }],
  ["a bug after one run had signed", { runs: 1, over: { account: broken as never } }, { note: NOT_OWED, left: 0 }],
])("An exam blocked by %s is given up after 30 minutes and four tries", async (_, { runs, over }, { note, left }) => {
  const order = await ordered();
  for (let run = 0; run < runs; run++) await sign(order);
  const waits = { note: null, left: 1 };
  expect(await tried(order, { after: 3, minutes: 29, over })).toEqual(waits);
  expect(await tried(order, { after: 2, minutes: 31, over })).toEqual(waits);
  expect(await tried(order, { after: 3, minutes: 31, over })).toEqual({ note: expect.stringMatching(note), left });
});

test.each([
  ["fails the exam within ten minutes of the order", 10, true, { status: "complete", runs: 1, note: null }],
  ["does not fail the exam later, and no refund is paid", 11, true, { status: "interrupted", runs: 0, note: NOT_OWED }],
  [
    "gets no request if its file no longer names the buyer",
    1,
    false,
    { status: "interrupted", runs: 0, note: NOT_OWED },
  ],
])("A seller whose quote has changed %s", async (...[, minutes, isNamed, { status, runs, note }]) => {
  const asked: string[] = [];
  const expires = new Date(Date.now() + 86_400_000).toISOString();
  const seller = await forFile(
    serveHttp((request, response) => {
      asked.push(request.url ?? "");
      const isFile = isNamed && request.url === "/.well-known/x402-exam.txt";
      const line = `x402-exam v1 trust.example ${SELLERS_WALLET} / ${expires}`;
      response.writeHead(isFile ? 200 : 404).end(isFile ? line : "");
    }),
  );
  const order = await ordered({ origin: seller.url, url: `${seller.url}/haiku` });
  const chain = { now: async () => Date.now() / 1_000 + minutes * 60, block: async () => 0n } as RunnerParts["ledger"];
  const over = {
    ledger: chain,
    account: { address: `0x${"ee".repeat(20)}`, balance: async () => 1_000_000n } as const,
    visitor: { visit: () => httpTransport(), resolves: async () => true },
  };
  const end = await tried(order, { after: 0, minutes: minutes - 0.01, over });
  expect(end).toEqual({ note: note === null ? null : expect.stringMatching(note), left: 0 });
  expect(await createExamStore(pool).get(order.id)).toMatchObject({ result: { outcome: status, runs } });
  if (!isNamed) expect(asked).toEqual(["/.well-known/x402-exam.txt"]);
});

test("A refund leaves the possible cost of open orders in the account", async () => {
  const order = await ordered({ amount: 150_000n });
  await tried(order, { after: 3, minutes: 31 });
  await storePurchase(owner, order, { state: "fulfilled", isFinal: true });
  await ordered({ amount: 150_000n });
  await owner.query("UPDATE seller_exam_work SET due_at = now() + interval '1 hour' WHERE exam <> $1", [order.id]);
  const sent: bigint[] = [];
  const unpaid = { time: Math.floor(Date.now() / 1_000), used: new Set<never>(), balance: 0n, bars: new Set<never>() };
  const paying = (balance: bigint) => ({
    account: { address: `0x${"ee".repeat(20)}`, balance: async () => balance } as const,
    ledger: {
      now: async () => Date.now() / 1_000,
      mayLag: false,
      read: async () => unpaid,
    } as unknown as RunnerParts["ledger"],
    refunds: {
      finalView: async () => ({ time: 0n, used: new Set<never>() }),
      send: async ({ value }: { value: bigint }) => {
        sent.push(value);
        return null;
      },
    },
  });
  const needed = EXAM_PRICE + mostSpent(150_000n);
  const pay = async (balance: bigint) => {
    await owner.query("UPDATE seller_exam_work SET due_at = '-infinity' WHERE exam = $1", [order.id]);
    const running = runner(32, paying(balance));
    await running.runDue();
    await running.idle();
  };
  await pay(needed - 1n);
  expect(sent).toEqual([]);
  await pay(needed);
  expect(sent).toEqual([EXAM_PRICE]);
});

test("A refund that cannot be paid is retried, and the exam's end does not change", async () => {
  const order = await ordered();
  await tried(order, { after: 3, minutes: 31 });
  const before = await createExamStore(pool).get(order.id);
  await storePurchase(owner, order, { state: "fulfilled", isFinal: true });
  expect(await tried(order, { after: 9, minutes: 99 })).toMatchObject({ left: 1 });
  expect(await createExamStore(pool).get(order.id)).toEqual(before);
});

test("A payment removed by a reorganization is not refunded", async () => {
  const order = await ordered();
  await tried(order, { after: 3, minutes: 31 });
  expect(await tried(order, { after: 0, minutes: 31 })).toMatchObject({ left: 1 });
  await storePurchase(owner, order, { state: "void", isFinal: true });
  expect(await tried(order, { after: 0, minutes: 31 })).toMatchObject({ left: 0 });
  expect((await createExamStore(pool).get(order.id))?.refund).toBeNull();
});

test("A free exam that fails through our fault pays no refund and may be repeated", async () => {
  const corrected = sampleOrder({ origin: "https://wronged.example" });
  await storeExam(pool, corrected, sampleResult());
  await createCorrections(pool).correct(corrected.id, "Our node was wrong.");
  const grants = createGrantStore(pool);
  await grants.grant(corrected.id, "ab".repeat(32));
  const free = () => sampleOrder({ origin: corrected.origin, againOf: corrected.id, orderedAt: new Date() });
  const first = free();
  expect(await grants.take(first)).toBe(true);
  const end = await tried(first, { after: 3, minutes: 31 });
  expect(end).toEqual({ note: expect.stringMatching(/may be taken again/), left: 0 });
  expect(await grants.take(free())).toBe(true);
});

describe("The clock of an exam", () => {
  const CHAIN = 1_790_000_000;

  test.each([
    ["equal to the chain's", 0, 0],
    ["ahead by a node's lag", 300, 300],
    ["behind the chain's", -120, 0],
  ])("With a local clock that is %s, the exam uses the later of the two times", async (_, ahead, counted) => {
    const clock = await examClock({ now: async () => CHAIN }, () => new Date((CHAIN + ahead) * 1_000));
    expect(clock() / 1_000 - CHAIN).toBe(counted);
  });

  test("No exam is held with a clock far ahead of the chain or with an unreachable chain", async () => {
    const late = new Date((CHAIN + 301) * 1_000);
    await expect(examClock({ now: async () => CHAIN }, () => late)).rejects.toThrow(/301 seconds behind/);
    const away = examClock({ now: () => Promise.reject(new Error("away")) }, () => late);
    await expect(away).rejects.toThrow(ExaminersFault);
  });
});

describe("The payments of an exam", () => {
  const payment = (place: number, validBefore = 1_000n): WatchedPayment => ({
    exam: "e".repeat(32),
    payer: `0x${"e8".repeat(20)}`,
    nonce: `0x${String(place).padStart(64, "0")}`,
    validBefore,
  });
  const used = (...payments: readonly WatchedPayment[]) => new Set(payments.map(({ nonce }) => nonce));
  const [one, two] = [payment(1), payment(2)];

  test.each([
    ["all used", { used: used(one, two), time: 0n }, "final"],
    ["one missing, which could still be submitted", { used: used(one), time: 999n }, null],
    ["one missing, which can no longer be submitted", { used: used(one), time: 1_000n }, "reversed"],
    ["all missing, and all expired", { used: used(), time: 2_000n }, "reversed"],
  ])("With %s at a final block, the payments of an exam have the expected outcome", (_, view, outcome) => {
    expect(endOfPayments([one, two], view)).toBe(outcome);
  });

  test("An exam is not reversed while every missing payment can still settle, and not final while one is missing", () => {
    const drawn = fc.array(fc.record({ isUsed: fc.boolean(), validBefore: fc.bigInt(0n, 5n) }), { minLength: 1 });
    fc.assert(
      fc.property(drawn, fc.bigInt(0n, 5n), (plans, time) => {
        const all = plans.map(({ validBefore }, place) => payment(place, validBefore));
        const seen = used(...all.filter((_, place) => plans[place]?.isUsed));
        const outcome = endOfPayments(all, { time, used: seen });
        const missing = plans.filter(({ isUsed }) => !isUsed);
        expect(outcome === "final").toBe(missing.length === 0);
        if (outcome === "reversed") expect(missing.some(({ validBefore }) => validBefore <= time)).toBe(true);
      }),
    );
  });
});

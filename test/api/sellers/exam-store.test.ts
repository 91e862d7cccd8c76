import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bytes, connect } from "../../../api/platform/db/connection.ts";
import { createExamStore } from "../../../api/sellers/exam-store.ts";
import { createExamWork } from "../../../api/sellers/exam-work-store.ts";
import type { KeptExchange } from "../../../api/sellers/published/schemas.ts";
import { createPublishedExamReader } from "../../../api/sellers/published/store.ts";
import { type Exam, isCurrent } from "../../../api/sellers/record.ts";
import { evidenceText, sampleOrder, sampleResult, storeExam, storeOrder } from "../../support/sellers/samples.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const INTERRUPTED = { outcome: "interrupted", level: null, isPublic: false, validUntil: null } as const;

/** Returns an exchange without an answer, as stored in evidence. */
const failed = (failure: string): KeptExchange => ({
  number: 1,
  request: { method: "GET", url: "https://seller.example/haiku", querySha256: null, headers: {}, bodySha256: null },
  answer: null,
  failure,
});

let pool: ReturnType<typeof connect>;
let owner: Awaited<ReturnType<typeof connectOwner>>;

beforeAll(async () => {
  const database = await freshDatabase();
  pool = connect(database.apiUrl);
  owner = await connectOwner(database);
});
afterAll(() => Promise.all([pool.end(), owner.end()]));

test("An exam is stored with its order and its result", async () => {
  const store = createExamStore(pool);
  const order = sampleOrder({ body: '{"topic":"rain"}', method: "POST", other: "https://seller.example/sonnet" });
  const run = await storeOrder(pool, order);
  expect(await store.get(order.id)).toEqual({
    order,
    result: null,
    correction: null,
    reversedAt: null,
    refund: null,
    removal: null,
  });
  const { evidence, ...result } = sampleResult({ evidence: evidenceText([failed("a\u0000b\ud800")]) });
  expect(await store.complete(order.id, run, { ...result, evidence })).toBe(true);
  expect(await store.get(order.id)).toEqual({
    order,
    result,
    correction: null,
    reversedAt: null,
    refund: null,
    removal: null,
  });
  expect(await store.evidence(order.id)).toBe(evidence);
  expect(await store.get("0".repeat(32))).toBeNull();
});

test("A run that lost its lease cannot store a result", async () => {
  const store = createExamStore(pool);
  const order = sampleOrder();
  const run = await storeOrder(pool, order);
  expect(await store.complete(order.id, randomUUID(), sampleResult())).toBe(false);
  expect((await store.get(order.id))?.result).toBeNull();
  expect(await store.complete(order.id, run, sampleResult())).toBe(true);
  expect(await store.complete(order.id, run, sampleResult())).toBe(false);
});

test("Public results are found by site, and by payee if the payee bought them, newest first", async () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 6, 2, 10, minute));
  const [origin, payTo] = ["https://found.example", `0x${"f0".repeat(20)}`] as const;
  const bought = (payer = payTo) => ({ payment: { ...sampleOrder().payment, payer } });
  const orders = [1, 2, 3].map(() => sampleOrder({ origin, payTo, ...bought() }));
  const [older, newer, hidden] = orders as [(typeof orders)[0], (typeof orders)[0], (typeof orders)[0]];
  await storeExam(pool, older, sampleResult({ endedAt: at(1) }));
  await storeExam(pool, newer, sampleResult({ endedAt: at(2), level: null }));
  await storeExam(pool, hidden, sampleResult({ endedAt: at(3), ...INTERRUPTED, note: "broke" }));
  // Bought by a stranger who quotes the same payee.
  await storeExam(pool, sampleOrder({ payTo, ...bought(`0x${"66".repeat(20)}`) }), sampleResult({ level: null }));
  const reader = createPublishedExamReader(pool);
  for (const found of [await reader.ofSite({ origin, prefix: "/" }, at(4)), await reader.ofPayee(payTo, at(4))])
    expect(found.map(({ order }) => order.id)).toEqual([newer.id, older.id]);
  expect((await createExamStore(pool).get(hidden.id))?.result?.note).toBe("broke");
  expect(await reader.ofSite({ origin: "https://elsewhere.example", prefix: "/" }, at(4))).toEqual([]);
});

test("The record of a path includes exams of the whole origin about that path, but not the reverse", async () => {
  const origin = "https://shared.example";
  const at = (minute: number) => new Date(Date.UTC(2026, 6, 2, 10, minute));
  const stored = async (prefix: string, url: string, minute: number) => {
    const order = sampleOrder({ origin, url: `${origin}${url}`, consent: { ...sampleOrder().consent, prefix } });
    await storeExam(pool, order, sampleResult({ endedAt: at(minute) }));
    return order.id;
  };
  const tenant = await stored("/~mallory/", "/~mallory/haiku", 1);
  const neighbor = await stored("/~mal/", "/~mal/haiku", 2);
  const whole = await stored("/", "/haiku", 3);
  const wholeAbout = await stored("/", "/~mallory?line=1", 4);
  const reader = createPublishedExamReader(pool);
  const found = async (prefix: string) => (await reader.ofSite({ origin, prefix }, at(9))).map(({ order }) => order.id);
  expect(await found("/")).toEqual([wholeAbout, whole]);
  expect(await found("/~mal/")).toEqual([neighbor]);
  expect(await found("/~mallory/")).not.toContain(neighbor);
  expect(await found("/~mallory/")).toContain(tenant);
  expect(await found("/missing/")).toEqual([]);
});

test("An exam that owes a refund stays in progress until the refund is recorded", async () => {
  const [store, work] = [createExamStore(pool), createExamWork(pool)];
  const order = sampleOrder({ origin: "https://refunded.example" });
  const run = await storeOrder(pool, order);
  const result = sampleResult({ ...INTERRUPTED, runs: 2 });
  expect(await store.complete(order.id, run, { ...result, endedAt: new Date(), owes: "refund" })).toBe(true);
  // Other orders of the same origin must not affect it.
  await storeExam(pool, sampleOrder({ origin: order.origin }), sampleResult({ endedAt: new Date() }));
  await storeOrder(pool, sampleOrder({ origin: order.origin, orderedAt: new Date(0) }));
  const taken = await work.take();
  expect(taken?.order.id).toBe(order.id);
  const refund = { transaction: order.settlement.transaction, block: 34 };
  const end = (lease: string) => work.end({ order, run: lease, attempts: 0 }, refund);
  await end(randomUUID());
  expect((await store.get(order.id))?.refund).toBeNull();
  await end(taken?.run ?? "");
  expect((await store.get(order.id))?.refund).toEqual(refund);
  expect(await work.take()).toBeNull();
});

test("A corrected result is unchanged and no longer counts", async () => {
  const store = createExamStore(pool);
  const order = sampleOrder({ origin: "https://corrected.example" });
  await storeExam(pool, order, sampleResult());
  const during = new Date("2026-07-10T10:00:00Z");
  const before = (await store.get(order.id)) as Exam;
  expect([isCurrent(before, during), isCurrent(before, new Date("2026-07-31T10:01:00Z"))]).toEqual([true, false]);
  await owner.query("INSERT INTO seller_exam_correction (exam, reason) VALUES ($1, 'our node was behind')", [order.id]);
  const after = (await store.get(order.id)) as Exam;
  expect(after).toMatchObject({ result: before.result, correction: { reason: "our node was behind", free: null } });
  expect(isCurrent(after, during)).toBe(false);
});

test("Settlements are stored exactly, and an exam whose purchase is reversed no longer counts", async () => {
  const store = createExamStore(pool);
  const settled = (byte: string, block: number, value: bigint) => ({
    nonce: `0x${byte.repeat(32)}` as const,
    transaction: `0x${"0b".repeat(32)}` as const,
    block,
    from: `0x${"0c".repeat(20)}` as const,
    to: `0x${"0d".repeat(20)}` as const,
    value,
  });
  const settlements = [settled("02", 7, 2n ** 200n), settled("01", 8, 1n)];
  const order = sampleOrder({ origin: "https://reversed.example" });
  await storeExam(pool, order, sampleResult({ settlements }));
  expect((await store.get(order.id))?.result?.settlements).toEqual(settlements);
  const { payment } = order;
  await owner.query(
    "INSERT INTO settlement_mark (chain, asset, payer, nonce, kind) VALUES (8453, $1, $2, $3, 'reversed')",
    [bytes(payment.asset), bytes(payment.payer), bytes(payment.nonce)],
  );
  const reversed = (await store.get(order.id)) as Exam;
  expect([reversed.reversedAt, isCurrent(reversed, order.orderedAt)]).toEqual([expect.any(Date), false]);
  const waiting = "SELECT type FROM log_pending WHERE ref = $1 ORDER BY seq";
  const { rows } = await owner.query(waiting, [order.id]);
  expect(rows).toEqual([{ type: "seller_certificate" }, { type: "reversal" }]);
});

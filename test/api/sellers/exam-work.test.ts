import { randomBytes, randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { bytes, connect } from "../../../api/platform/db/connection.ts";
import { noRoom } from "../../../api/sellers/exam-account.ts";
import { createExamStore } from "../../../api/sellers/exam-store.ts";
import {
  createExamWork,
  type OpenOrder,
  type OriginState,
  type TakenExam,
} from "../../../api/sellers/exam-work-store.ts";
import { createGrantStore, createProbeStore } from "../../../api/sellers/orders-store.ts";
import { EXAM_PRICE, mostSpent, PROBES_AN_ORIGIN } from "../../../api/sellers/products.ts";
import type { KeptExchange } from "../../../api/sellers/published/schemas.ts";
import { createCorrections } from "../../../api/sellers/published/store.ts";
import { type Exam, type ExamOrder, isCurrent, type PublishedExam, published } from "../../../api/sellers/record.ts";
import { forFile } from "../../support/for-file.ts";
import {
  evidenceText,
  sampleOrder,
  sampleResult,
  storeExam,
  storeOrder,
  storePurchase,
  UNPUBLISHED,
} from "../../support/sellers/samples.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl));
const owner = await forFile(connectOwner(database));

beforeEach(async () => {
  await owner.query("DELETE FROM seller_exam_work");
  await owner.query("DELETE FROM seller_exam_open");
});

const ordered = async (over: Partial<ExamOrder> = {}): Promise<ExamOrder> => {
  const order = sampleOrder({ origin: `https://${randomBytes(6).toString("hex")}.example`, ...over });
  for (const { text, values } of createExamStore(pool).adding(order)) await pool.query(text, [...values]);
  return order;
};
const taken = async (): Promise<TakenExam> => {
  const exam = await createExamWork(pool).take();
  if (exam === null) throw new Error("there was nothing to take");
  return exam;
};
const endLeases = () => owner.query("UPDATE seller_exam_work SET lease_until = '-infinity'");

test("Only one process takes an exam, and an origin accepts no second order until the first has a result", async () => {
  const origin = "https://busy.example";
  const first = await ordered({ origin, orderedAt: new Date("2026-07-01T10:00:00Z") });
  const other = await ordered({ orderedAt: new Date("2026-07-01T10:00:02Z") });
  await expect(ordered({ origin })).rejects.toThrow();
  const all = await Promise.all([1, 2, 3, 4].map(() => createExamWork(pool).take()));
  expect(new Set(all.map((exam) => exam?.order.id))).toEqual(new Set([first.id, other.id, undefined]));
  const run = all.find((exam) => exam?.order.id === first.id)?.run ?? "";
  await createExamStore(pool).complete(first.id, run, sampleResult({ endedAt: new Date() }));
  const found = await createExamWork(pool).originState(origin);
  expect(found).toMatchObject({ isOpen: false, restsFor: expect.any(Number) });
  expect(found.restsFor).toBeGreaterThan(500);
});

const opening = (origin: string, byte: string): OpenOrder => ({
  ...{ origin, amount: 1_000n },
  payer: `0x${"ab".repeat(20)}`,
  nonce: `0x${byte.repeat(32)}`,
});
const judge = ({ isOpen }: OriginState) => (isOpen ? "open" : null);

test("Exactly one of twenty concurrent orders of one origin in two processes is opened", async () => {
  const other = await forFile(connect(database.apiUrl));
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, place) =>
      createExamWork(place % 2 === 0 ? pool : other).open(opening("https://one.example", `${place + 10}`), judge),
    ),
  );
  expect(answers.filter((answer) => answer === null)).toHaveLength(1);
  expect(answers.filter((answer) => answer === "open")).toHaveLength(19);
});

test("An open order may be repeated, counts as committed, and lapses without a payment", async () => {
  const [work, origin] = [createExamWork(pool), "https://again.example"];
  const [one, another] = [opening(origin, "01"), opening(origin, "02")];
  expect(await work.open(one, judge)).toBeNull();
  expect(await work.open(one, judge)).toBeNull();
  expect(await work.open(another, judge)).toBe("open");
  expect(await work.commitments()).toMatchObject({ openExams: 1, open: mostSpent(1_000n) });
  await owner.query("UPDATE seller_exam_open SET until = now() - interval '1 s'");
  expect(await work.commitments()).toMatchObject({ openExams: 0, open: 0n });
  expect(await work.open(another, judge)).toBeNull();
  expect(await work.open(one, judge)).toBe("open");
});

test("Concurrent orders of different origins are admitted only as far as the balance covers them", async () => {
  const room = ({ commitments }: OriginState) =>
    noRoom({ ...commitments, balance: mostSpent(1_000n) * 3n, daily: 10n ** 9n }, 1_000n);
  const answers = await Promise.all(
    Array.from({ length: 7 }, (_, place) =>
      createExamWork(pool).open(opening(`https://${place}.example`, `${place + 10}`), room),
    ),
  );
  expect(answers.filter((answer) => answer === null)).toHaveLength(3);
});

test("An expired lease passes the exam to another run, and the first run may no longer sign", async () => {
  const work = createExamWork(pool);
  await ordered();
  const first = await taken();
  expect(await work.keep(first)).toBe(true);
  await endLeases();
  expect(await work.keep(first)).toBe(false);
  const second = await taken();
  expect(second).toMatchObject({ order: first.order, attempts: 1 });
  await expect(work.note(first, authorization(first), 1n)).rejects.toThrow(/another process/);
  await work.note(second, authorization(second), 1n);
  expect((await work.signatures(second.order.id)).map(({ run }) => run)).toEqual([second.run]);
});

const authorization = ({ order }: TakenExam, value = 1n) => ({
  from: `0x${"ee".repeat(20)}` as const,
  to: order.payTo,
  value,
  validAfter: 0n,
  validBefore: 10n,
  nonce: `0x${randomBytes(32).toString("hex")}` as const,
});

test("An exam may sign in at most two runs and within its spending limit", async () => {
  const work = createExamWork(pool);
  const { amount } = await ordered();
  for (const payments of [3, 3]) {
    const run = await taken();
    for (let count = 0; count < payments; count++) await work.note(run, authorization(run, amount), amount);
    await endLeases();
  }
  const third = await taken();
  await expect(work.note(third, authorization(third, 0n), 0n)).rejects.toThrow(/signed its maximum/);
  expect(await work.signatures(third.order.id)).toHaveLength(6);
  await ordered();
  const greedy = await taken();
  await expect(work.note(greedy, authorization(greedy), mostSpent(amount) + 1n)).rejects.toThrow(/signed its maximum/);
});

test("The commitments include the possible cost of open exams and the amount signed in a day", async () => {
  const work = createExamWork(pool);
  const before = await work.commitments();
  const { amount } = await ordered();
  await ordered({ orderedAt: new Date("2026-07-02T10:00:00Z") });
  const run = await taken();
  await work.note(run, authorization(run, amount), amount);
  const after = await work.commitments();
  expect(after).toEqual({
    openExams: 2,
    open: 2n * mostSpent(amount),
    owed: 0n,
    kept: 0n,
    signed: before.signed + amount,
  });
});

test("The commitments include an ended exam's signed payments until they have settled or expired", async () => {
  const [work, store] = [createExamWork(pool), createExamStore(pool)];
  const { id, amount } = await ordered();
  const run = await taken();
  const valid = { ...authorization(run, amount), validBefore: BigInt(Math.floor(Date.now() / 1000) + 300) };
  const settled = { ...valid, nonce: `0x${randomBytes(32).toString("hex")}` as const };
  for (const one of [valid, settled, authorization(run, amount)]) await work.note(run, one, amount);
  expect(await work.commitments()).toMatchObject({ kept: 0n, open: mostSpent(amount) });
  const { nonce, from, to, value } = settled;
  const settlements = [{ nonce, transaction: nonce, block: 1, from, to, value }];
  await store.complete(id, run.run, sampleResult({ endedAt: new Date(), settlements }));
  expect(await work.commitments()).toMatchObject({ kept: amount, open: 0n });
});

test("Owed refunds count as commitments, and a refund leaves enough for open orders and earlier refunds", async () => {
  const [work, store] = [createExamWork(pool), createExamStore(pool)];
  const owed = { ...UNPUBLISHED, owes: "refund" } as const;
  for (const minute of [1, 2]) {
    await ordered({ orderedAt: new Date(Date.UTC(2026, 6, 1, 10, minute)) });
    const { order, run } = await taken();
    await store.complete(order.id, run, sampleResult({ ...owed, endedAt: new Date() }));
    await owner.query("UPDATE seller_exam_work SET due_at = now() + interval '1 hour'");
  }
  await ordered({ orderedAt: new Date(Date.UTC(2026, 6, 1, 10, 3)) });
  await owner.query("UPDATE seller_exam_work SET due_at = '-infinity'");
  const { kept, ...commitments } = await work.commitments();
  expect(commitments).toMatchObject({ openExams: 1, owed: 2n * EXAM_PRICE, open: mostSpent(1_000n) });
  const all = [await taken(), await taken(), await taken()].toSorted(
    (a, b) => a.order.orderedAt.getTime() - b.order.orderedAt.getTime(),
  );
  const reserved = await Promise.all(all.slice(0, 2).map((exam) => work.reservedBefore(exam)));
  expect(reserved).toEqual([mostSpent(1_000n) + kept, mostSpent(1_000n) + kept + EXAM_PRICE]);
});

test.each([
  ["fulfilled", false, null],
  ["fulfilled", true, "final"],
  ["settled", false, null],
  ["void", true, "reversed"],
] as const)("The purchase of an exam that is %s (final: %s) has ended as %s", async (state, isFinal, outcome) => {
  const order = sampleOrder();
  await storePurchase(owner, order, { state, isFinal });
  expect(await createExamWork(pool).purchaseEnd(order)).toBe(outcome);
});

test("A free exam that ended through our fault may be repeated once", async () => {
  const [store, grants] = [createExamStore(pool), createGrantStore(pool)];
  const corrected = sampleOrder({ origin: "https://wronged.example" });
  await storeExam(pool, corrected, sampleResult());
  await createCorrections(pool).correct(corrected.id, "Our node was wrong.");
  expect(await grants.grant(corrected.id, "ab".repeat(32))).toBe(true);
  const again = () => sampleOrder({ origin: corrected.origin, againOf: corrected.id, orderedAt: new Date() });
  const [first, second] = [again(), again()];
  const both = await Promise.all([grants.take(first), grants.take(first)]);
  expect(both.toSorted()).toEqual([false, true]);
  expect([await grants.take(second), await grants.grant(corrected.id, "cd".repeat(32))]).toEqual([false, false]);
  expect((await store.get(corrected.id))?.correction?.free?.exam).toBe(first.id);
  const broken = { ...UNPUBLISHED, endedAt: new Date(0) };
  const { run } = await taken();
  await store.complete(first.id, run, sampleResult({ ...broken, owes: "another" }));
  expect((await store.get(corrected.id))?.correction?.free?.exam).toBeNull();
  expect(await grants.find(corrected.id)).toEqual({ tokenSha256: "ab".repeat(32), broken: 1 });
  expect(await createExamWork(pool).take()).toBeNull();
  expect(await grants.take(second)).toBe(true);
  const other = await taken();
  await store.complete(second.id, other.run, sampleResult({ ...broken, runs: 2 }));
  expect([await grants.take(again()), (await grants.find(corrected.id))?.broken]).toEqual([false, 1]);
});

test("An origin gets a limited number of quote requests in ten minutes, and a result is cached for concurrent callers", async () => {
  const probes = createProbeStore(pool);
  const request = randomBytes(32);
  const origin = "https://probed.example";
  const begun = await Promise.all(Array.from({ length: 20 }, () => probes.begin(origin, request)));
  const allowed = begun.filter((one) => typeof one === "object");
  expect(allowed).toHaveLength(PROBES_AN_ORIGIN);
  expect(begun.filter((one) => typeof one === "number" && one > 0)).toHaveLength(20 - PROBES_AN_ORIGIN);
  expect(await probes.fresh(request)).toBeNull();
  const found = { lines: [], faults: [], quote: { payTo: `0x${"5e".repeat(20)}`, amount: "1000" } } as const;
  await probes.finish(allowed[0]?.id ?? "", found);
  expect(await probes.fresh(request)).toEqual(found);
  await owner.query("UPDATE seller_probe SET at = now() - interval '10 min'");
  expect(await probes.fresh(request)).toBeNull();
  expect(await probes.begin(origin, request)).toMatchObject({ id: expect.any(String) });
});

const RECEIVED = `INSERT INTO payment (chain, asset, payer, nonce, digest, signature_sha256, valid_after, valid_before, route,
  fingerprint, pay_to, value, version, scheme, received_at, head_block, state)
  VALUES (8453, $1, $2, $3, '\\x00', '\\x00', 0, 1, 'test.seller', '\\x00', $2, 1, 'v2', 'exact', now(), 1, 'received')`;

test("A payment starts to settle only while its order is open, and a void payment closes the order", async () => {
  const [work, origin] = [createExamWork(pool), "https://fenced.example"];
  const input = JSON.stringify({ settled: { origin } });
  const { asset } = sampleOrder().payment;
  const [first, second] = [opening(origin, "31"), opening(origin, "32")];
  for (const { payer, nonce } of [first, second])
    await owner.query(RECEIVED, [bytes(asset), bytes(payer), bytes(nonce)]);
  const move = async ({ nonce }: OpenOrder, state: string) =>
    (
      await pool.query("UPDATE payment SET state = $2, reason = 'expired', input = $3 WHERE nonce = $1", [
        bytes(nonce),
        state,
        input,
      ])
    ).rowCount;
  expect(await move(first, "settling")).toBe(0);
  expect(await work.open(first, judge)).toBeNull();
  await owner.query("UPDATE seller_exam_open SET until = now() - interval '1 s'");
  // The first order lapsed and another opened, so the first payment cannot settle.
  expect(await work.open(second, judge)).toBeNull();
  expect(await move(first, "settling")).toBe(0);
  expect(await move(second, "settling")).toBe(1);
  expect((await owner.query("SELECT FROM seller_exam_open WHERE until = 'infinity'")).rowCount).toBe(1);
  expect(await work.open(first, judge)).toBe("open");
  expect(await move(second, "void")).toBe(1);
  expect(await work.open(first, judge)).toBeNull();
  expect(await move(first, "settling")).toBe(1);
});

/** Returns an exchange without an answer, as stored in evidence. */
const failed = (failure: string): KeptExchange => ({
  number: 1,
  request: { method: "GET", url: "https://seller.example/haiku", querySha256: null, headers: {}, bodySha256: null },
  answer: null,
  failure,
});

test("An exam is stored with its order and its result", async () => {
  const store = createExamStore(pool);
  const order = sampleOrder({ body: '{"topic":"rain"}', method: "POST", other: "https://seller.example/sonnet" });
  const run = await storeOrder(pool, order);
  const rest = { correction: null, reversedAt: null, refund: null, removal: null };
  expect(await store.get(order.id)).toEqual({ order, result: null, ...rest });
  const { evidence, ...result } = sampleResult({ evidence: evidenceText([failed("a\u0000b\ud800")]) });
  expect(await store.complete(order.id, run, { ...result, evidence })).toBe(true);
  expect(await store.get(order.id)).toEqual({ order, result, ...rest });
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

test("An exam that owes a refund stays in progress until the refund is recorded", async () => {
  const [store, work] = [createExamStore(pool), createExamWork(pool)];
  const order = sampleOrder({ origin: "https://refunded.example" });
  const run = await storeOrder(pool, order);
  const result = sampleResult({ ...UNPUBLISHED, runs: 2 });
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
  const reversed = published((await store.get(order.id)) as Exam) as PublishedExam;
  expect([reversed.reversedAt, isCurrent(reversed, order.orderedAt)]).toEqual([expect.any(Date), false]);
  const waiting = "SELECT type FROM log_pending WHERE ref = $1 ORDER BY seq";
  const { rows } = await owner.query(waiting, [order.id]);
  expect(rows).toEqual([{ type: "seller_certificate" }, { type: "reversal" }]);
});

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createExamStore } from "../../../api/adapters/postgres/exam-store.ts";
import { createExamWork } from "../../../api/adapters/postgres/exam-work.ts";
import { createGrantStore } from "../../../api/adapters/postgres/grant-store.ts";
import { createProbeStore } from "../../../api/adapters/postgres/probe-store.ts";
import { createCorrections } from "../../../api/adapters/postgres/published-exams.ts";
import type { TakenExam } from "../../../api/seller-exam/ports.ts";
import { mostSpent, PROBES_AN_ORIGIN } from "../../../api/seller-exam/products.ts";
import type { ExamOrder } from "../../../api/seller-exam/record.ts";
import { storePurchase } from "../../support/seller-exam/purchase.ts";
import { sampleOrder, sampleResult, storeExam } from "../../support/seller-exam/samples.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

let pool: ReturnType<typeof connect>;
let owner: Awaited<ReturnType<typeof connectOwner>>;

beforeAll(async () => {
  const database = await freshDatabase();
  pool = connect(database.apiUrl);
  owner = await connectOwner(database);
});
beforeEach(async () => void (await owner.query("DELETE FROM seller_exam_work")));
afterAll(() => Promise.all([pool.end(), owner.end()]));

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

test("of an origin one exam runs at a time, in the order of sales, whoever asks", async () => {
  const origin = "https://busy.example";
  const first = await ordered({ origin, orderedAt: new Date("2026-07-01T10:00:00Z") });
  const second = await ordered({ origin, orderedAt: new Date("2026-07-01T10:00:01Z") });
  const other = await ordered({ orderedAt: new Date("2026-07-01T10:00:02Z") });
  const all = await Promise.all([1, 2, 3, 4].map(() => createExamWork(pool).take()));
  expect(new Set(all.map((exam) => exam?.order.id))).toEqual(new Set([first.id, other.id, undefined]));
  const run = all.find((exam) => exam?.order.id === first.id)?.run ?? "";
  await createExamStore(pool).complete(first.id, run, sampleResult({ endedAt: new Date() }));
  expect(await createExamWork(pool).take()).toBeNull();
  expect(await createExamWork(pool).standing(origin)).toMatchObject({ isOpen: true, restsFor: expect.any(Number) });
  expect(second.id).not.toBe(first.id);
});

test("a lease that ran out passes the exam on, and the first run may sign nothing any more", async () => {
  const work = createExamWork(pool);
  await ordered();
  const first = await taken();
  expect(await work.keep(first)).toBe(true);
  await endLeases();
  expect(await work.keep(first)).toBe(false);
  const second = await taken();
  expect(second).toMatchObject({ order: first.order, takes: 1 });
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

test("an exam signs in two runs and not in a third, and never more than twice three payments", async () => {
  const work = createExamWork(pool);
  const { amount } = await ordered();
  for (const payments of [3, 3]) {
    const run = await taken();
    for (let count = 0; count < payments; count++) await work.note(run, authorization(run, amount), amount);
    await endLeases();
  }
  const third = await taken();
  await expect(work.note(third, authorization(third, 0n), 0n)).rejects.toThrow(/all that it may/);
  expect(await work.signatures(third.order.id)).toHaveLength(6);
  await ordered();
  const greedy = await taken();
  await expect(work.note(greedy, authorization(greedy), mostSpent(amount) + 1n)).rejects.toThrow(/all that it may/);
});

test("a passive exam signs nothing", async () => {
  await ordered({ mode: "passive", consent: null });
  const run = await taken();
  await expect(createExamWork(pool).note(run, authorization(run), 0n)).rejects.toThrow();
});

test("what open exams may cost and what was signed in a day are counted", async () => {
  const work = createExamWork(pool);
  const before = await work.commitments();
  const { amount } = await ordered();
  await ordered({ mode: "passive", consent: null, orderedAt: new Date("2026-07-02T10:00:00Z") });
  const run = await taken();
  await work.note(run, authorization(run, amount), amount);
  const after = await work.commitments();
  expect(after).toEqual({ openExams: 2, open: mostSpent(amount), kept: 0n, signed: before.signed + amount });
});

test("what an ended exam has signed is kept for its seller until it has settled or expired", async () => {
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

test("orders that wait while their origin rests take no place from others", async () => {
  const [work, origin] = [createExamWork(pool), "https://queued.example"];
  const all: ExamOrder[] = [];
  for (let count = 0; count < 12; count++)
    all.push(await ordered({ origin, orderedAt: new Date(Date.UTC(2026, 6, 1, 10, count)) }));
  expect(await work.commitments()).toMatchObject({ openExams: 1, open: 12n * mostSpent(1_000n) });
  const first = await taken();
  expect(first.order.id).toBe(all[0]?.id);
  await createExamStore(pool).complete(first.order.id, first.run, sampleResult({ endedAt: new Date() }));
  expect(await work.commitments()).toMatchObject({ openExams: 0, open: 11n * mostSpent(1_000n) });
});

test.each([
  ["fulfilled", false, null],
  ["fulfilled", true, "final"],
  ["settled", false, null],
  ["void", true, "reversed"],
] as const)("a purchase that is %s, and for good: %s, has this fate: %s", async (state, isFinal, fate) => {
  const order = sampleOrder();
  await storePurchase(owner, order, { state, isFinal });
  expect(await createExamWork(pool).purchaseFate(order)).toBe(fate);
});

test("a free exam that something of ours ended may be taken once more, and no other one", async () => {
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
  const broken = {
    outcome: "interrupted",
    level: null,
    isPublic: false,
    validUntil: null,
    endedAt: new Date(0),
  } as const;
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

test("an origin is asked for quotes a few times in ten minutes, however many want to know at once", async () => {
  const probes = createProbeStore(pool);
  const request = randomBytes(32);
  const origin = "https://probed.example";
  const begun = await Promise.all(Array.from({ length: 20 }, () => probes.begin(origin, request)));
  const allowed = begun.filter((one) => typeof one === "object");
  expect(allowed).toHaveLength(PROBES_AN_ORIGIN);
  expect(begun.filter((one) => typeof one === "number" && one > 0)).toHaveLength(20 - PROBES_AN_ORIGIN);
  expect(await probes.fresh(request)).toBeNull();
  const found = { payTo: `0x${"5e".repeat(20)}`, amount: "1000", hasFile: false } as const;
  await probes.finish(allowed[0]?.id ?? "", found);
  expect(await probes.fresh(request)).toEqual(found);
  await owner.query("UPDATE seller_probe SET at = now() - interval '10 min'");
  expect(await probes.fresh(request)).toBeNull();
  expect(await probes.begin(origin, request)).toMatchObject({ id: expect.any(String) });
});

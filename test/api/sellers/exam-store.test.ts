import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { bytes, connect } from "../../../api/platform/db/connection.ts";
import { createExamStore } from "../../../api/sellers/exam-store.ts";
import { createExamWork } from "../../../api/sellers/exam-work-store.ts";
import type { KeptExchange } from "../../../api/sellers/published/schemas.ts";
import { type Exam, isCurrent, type PublishedExam, published } from "../../../api/sellers/record.ts";
import { forFile } from "../../support/for-file.ts";
import {
  evidenceText,
  sampleOrder,
  sampleResult,
  storeExam,
  storeOrder,
  UNPUBLISHED,
} from "../../support/sellers/samples.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

/** Returns an exchange without an answer, as stored in evidence. */
const failed = (failure: string): KeptExchange => ({
  number: 1,
  request: { method: "GET", url: "https://seller.example/haiku", querySha256: null, headers: {}, bodySha256: null },
  answer: null,
  failure,
});

const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl));
const owner = await forFile(connectOwner(database));

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

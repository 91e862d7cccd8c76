import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { createScoreExams } from "../../../api/score/store.ts";
import { createPublishedExamReader } from "../../../api/sellers/published/store.ts";
import { payeeExams } from "../../../api/sellers/published/verification.ts";
import { forFile } from "../../support/for-file.ts";
import { FAIL, sampleOrder, sampleResult, storeExam, UNPUBLISHED } from "../../support/sellers/samples.ts";
import { freshDatabase } from "../../support/service/database.ts";

const DAY_MS = 86_400_000;
const NOW = new Date("2026-08-01T12:00:00Z");
const baseUrl = "https://trust.example";
const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl, 1));
const [exams, reader] = [createScoreExams(pool), createPublishedExamReader(pool)];
const newWallet = (): Address => `0x${randomBytes(20).toString("hex")}`;

interface Held {
  readonly url: string;
  readonly body: string | null;
  readonly isPass: boolean;
  readonly isOwn: boolean;
  readonly isPublic: boolean;
  readonly became: "kept" | "corrected" | "reversed";
  readonly ago: number;
}

const held: fc.Arbitrary<Held> = fc.record({
  url: fc.constantFrom("/haiku", "/sonnet"),
  body: fc.constantFrom(null, "{}"),
  isPass: fc.boolean(),
  isOwn: fc.boolean(),
  isPublic: fc.nat(4).map((n) => n > 0),
  became: fc.constantFrom<Held["became"][]>("kept", "kept", "kept", "corrected", "reversed"),
  ago: fc.nat(45),
});

const boughtBy = (payer: Address) => ({ payment: { ...sampleOrder().payment, payer } });

/** Stores a history with one minute between exams. @returns the payee */
async function store(history: readonly Held[]): Promise<Address> {
  const payTo = newWallet();
  for (const [place, { url, body, isPass, isOwn, isPublic, became, ago }] of history.entries()) {
    const order = sampleOrder({
      ...{ payTo, body, url: `https://seller.example${url}`, method: body === null ? "GET" : "POST" },
      ...(isOwn ? boughtBy(payTo) : {}),
    });
    const endedAt = new Date(NOW.getTime() - ago * DAY_MS - place * 60_000);
    const verdict = isPublic ? (isPass ? {} : FAIL) : UNPUBLISHED;
    await storeExam(pool, order, sampleResult({ endedAt, ...verdict }));
    if (!isPublic || became === "kept") continue;
    const insert =
      became === "corrected"
        ? "seller_exam_correction (exam, reason) VALUES ($1, 'ours')"
        : "seller_exam_reversal (exam) VALUES ($1)";
    await pool.query(`INSERT INTO ${insert}`, [order.id]);
  }
  return payTo;
}

test("A score has the newest PASS that /payee shows and never a FAIL, for any history", async () => {
  const histories = fc.sample(fc.array(held, { maxLength: 7 }), { numRuns: 40, seed: 28 });
  const wallets: Address[] = [];
  for (const history of histories) wallets.push(await store(history));
  const found = await exams.newest(wallets, NOW);
  const listed = await Promise.all(
    wallets.map(async (wallet) => {
      const all = payeeExams(wallet, await reader.ofPayee(wallet, NOW), { baseUrl, now: NOW }).exams;
      return ["pass", "fail"].flatMap((result) => all.find((one) => one.result === result) ?? []);
    }),
  );
  const short = ({ id, origin, result, level, control }: (typeof listed)[number][number]) => ({
    id,
    origin,
    result,
    level,
    control,
  });
  expect(found.map((some) => some.map(({ issuedAt, validUntil, ...one }) => [one, issuedAt, validUntil]))).toEqual(
    listed.map((some) => some.map((one) => [short(one), new Date(one.issued), new Date(one.valid_until)])),
  );
  // The sample covers each case.
  expect(new Set(found.map((some) => some.map(({ result }) => result).join()))).toEqual(new Set(["", "pass"]));
});

test("A PASS counts until the end of its thirtieth day", async () => {
  const payTo = newWallet();
  const validUntil = new Date(NOW.getTime() + 1);
  await storeExam(pool, sampleOrder({ payTo, ...boughtBy(payTo) }), sampleResult({ endedAt: NOW, validUntil }));
  expect(await exams.newest([payTo], NOW)).toMatchObject([[{ result: "pass" }]]);
  expect(await exams.newest([payTo], validUntil)).toEqual([[]]);
});

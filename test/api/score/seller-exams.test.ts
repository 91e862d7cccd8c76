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
import { connectOwner, freshDatabase, plansOf } from "../../support/service/database.ts";

const DAY_MS = 86_400_000;
const NOW = new Date("2026-08-01T12:00:00Z");
const baseUrl = "https://trust.example";
const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl, 1));
const owner = await forFile(connectOwner(database));
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

/** Stores a history, each exam a minute apart from every other. @returns the payee */
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
    const said =
      became === "corrected"
        ? "seller_exam_correction (exam, reason) VALUES ($1, 'ours')"
        : "seller_exam_reversal (exam) VALUES ($1)";
    await pool.query(`INSERT INTO ${said}`, [order.id]);
  }
  return payTo;
}

test("a score has the newest PASS of what /payee tells, and no FAIL, whatever was held", async () => {
  const histories = fc.sample(fc.array(held, { maxLength: 7 }), { numRuns: 40, seed: 28 });
  const wallets: Address[] = [];
  for (const history of histories) wallets.push(await store(history));
  const found = await exams.newest(wallets, NOW);
  const told = await Promise.all(
    wallets.map(async (wallet) => {
      const all = payeeExams(wallet, await reader.ofPayee(wallet, NOW), { baseUrl, now: NOW }).exams;
      return ["pass", "fail"].flatMap((result) => all.find((one) => one.result === result) ?? []);
    }),
  );
  const short = ({ id, origin, result, level, control }: (typeof told)[number][number]) => ({
    id,
    origin,
    result,
    level,
    control,
  });
  expect(found.map((some) => some.map(({ issuedAt, validUntil, ...one }) => [one, issuedAt, validUntil]))).toEqual(
    told.map((some) => some.map((one) => [short(one), new Date(one.issued), new Date(one.valid_until)])),
  );
  // The sample has each of the cases.
  expect(new Set(found.map((some) => some.map(({ result }) => result).join()))).toEqual(new Set(["", "pass"]));
});

test("a wallet that nobody examined has none, and neither has one whose exam is not published", async () => {
  const quiet = newWallet();
  await storeExam(
    pool,
    sampleOrder({ payTo: quiet, ...boughtBy(quiet) }),
    sampleResult({ endedAt: NOW, ...UNPUBLISHED }),
  );
  expect(await exams.newest([newWallet(), quiet], NOW)).toEqual([[], []]);
  expect(await exams.newest([], NOW)).toEqual([]);
});

test("a PASS counts until the end of its thirtieth day", async () => {
  const payTo = newWallet();
  const validUntil = new Date(NOW.getTime() + 1);
  await storeExam(pool, sampleOrder({ payTo, ...boughtBy(payTo) }), sampleResult({ endedAt: NOW, validUntil }));
  expect(await exams.newest([payTo], NOW)).toMatchObject([[{ result: "pass" }]]);
  expect(await exams.newest([payTo], validUntil)).toEqual([[]]);
});

const MANY = `WITH n AS (SELECT n, md5(n::text) AS id, decode(md5(n::text) || '00000000', 'hex') AS payee FROM generate_series(1, 20000) n),
  ordered AS (INSERT INTO seller_exam (id, origin, url, method, content_type, pay_to, amount, path_prefix, consent, chain, asset, payer, nonce, tx, block_number, ordered_at)
    SELECT id, 'https://s' || n || '.example', 'https://s' || n || '.example/haiku', 'GET', 'application/json', payee, 1000, '/', '{}', 8453, payee, payee,
      decode(id || id, 'hex'), decode(id || id, 'hex'), 12, $1 FROM n RETURNING 1)
  INSERT INTO seller_exam_result (exam, origin, pay_to, outcome, level, is_public, checks, evidence, evidence_sha256, runs, began_at, ended_at, valid_until)
    SELECT id, 'https://s' || n || '.example', payee, 'complete', 'full', true, '[]', '{}', decode(id || id, 'hex'), 1, $1, $1, $1::timestamptz + interval '30 days' FROM n`;

test("the exams of 25 wallets are found by the payee's index among 20,000", async () => {
  await owner.query("SET session_replication_role = replica");
  await owner.query(MANY, [NOW]);
  await owner.query("ANALYZE seller_exam, seller_exam_result, seller_exam_correction");
  const wallets = (
    await owner.query<{ wallet: Address }>(
      "SELECT '0x' || encode(pay_to, 'hex') AS wallet FROM seller_exam WHERE origin LIKE 'https://s%1.example' LIMIT 25",
    )
  ).rows.map(({ wallet }) => wallet);
  expect(await exams.newest(wallets, NOW)).toHaveLength(25);
  const [plan] = await plansOf(database, (on) => createScoreExams(on).newest(wallets, NOW));
  const scans = plan?.scans ?? [];
  expect(scans.join()).toMatch(/seller_exam_result_payee/);
  expect(scans.filter((scan) => /Seq Scan seller_exam(_result)?$/.test(scan))).toEqual([]);
  expect(plan?.buffers).toBeLessThan(25 * 40);
});

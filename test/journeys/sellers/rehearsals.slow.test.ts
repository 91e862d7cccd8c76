import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { LocalAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { type Answer, challengeOf, post, send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { EXAM_KEY, lineFor, outcomesOf } from "../../support/sellers/buying.ts";
import { openShop } from "../../support/sellers/shop.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

// Seller exams in test money that the service holds. They must leave nothing in any record.

const SEPOLIA = NETWORKS["eip155:84532"];
const chain = await forFile(startTestChain({ network: SEPOLIA.id, mining: { everySeconds: 1 } }));
const examiner = privateKeyToAccount(EXAM_KEY).address;
const shops = {
  honest: await forFile(openShop(chain)),
  replayed: await forFile(openShop(chain, "serves a replay")),
  refused: await forFile(openShop(chain)),
};
const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const service = await forFile(
  startService({
    chain,
    database,
    config: {
      exams: { key: EXAM_KEY, daily: 50_000_000n },
      arbiterAllowedOrigins: Object.values(shops).map(({ url }) => url),
    },
  }),
);
const payer = await newPayer(chain, 50_000_000n);
await chain.fund(examiner, 1_000_000n);

const unpaid = (url: string): Promise<Answer> =>
  post(`${service.url}/rehearsal/seller`, { "content-type": "application/json" }, JSON.stringify({ url }));

/** Orders a rehearsal with the stock client and waits for its result. */
async function rehearsed(url: string, account: LocalAccount = payer) {
  const client = new x402Client().register(SEPOLIA.id, new ExactEvmScheme(account));
  const order = await wrapFetchWithPayment(fetch, client)(`${service.url}/rehearsal/seller`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url }),
  });
  const ordered = (await order.json()) as Record<string, unknown>;
  if (order.status !== 200) return { status: order.status, ordered, result: {} };
  let result: Record<string, unknown> = {};
  const isOver = async () => {
    result = (await send(String(ordered.exam_url))).body;
    return result.status !== "incomplete";
  };
  expect(await waitUntil(isOver, 120_000, 200)).toBe(true);
  return { status: order.status, ordered, result };
}

/** Expects nothing in the log, the exams, and the seller's pages. */
async function expectNoTrace(origin: string): Promise<void> {
  for (const table of ["seller_exam", "seller_exam_result", "seller_exam_signature", "certificate"])
    expect([table, (await owner.query(`SELECT FROM ${table}`)).rowCount]).toEqual([table, 0]);
  expect(
    (await owner.query("SELECT FROM log_entry WHERE type IN ('certificate', 'seller', 'reversal')")).rowCount,
  ).toBe(0);
  expect((await send(`${service.url}/verify?origin=${origin}`)).body).toMatchObject({ tested: false });
}

describe("POST /rehearsal/seller", () => {
  test("A careful seller's rehearsal reaches level full, names the exam as the next step, and leaves no trace", async () => {
    const { honest } = shops;
    const url = `${honest.url}/haiku`;
    honest.place(await lineFor(service.url, url, payer));
    const [terms] = challengeOf(await unpaid(url)).accepts;
    expect(terms).toMatchObject({ network: SEPOLIA.id, amount: "1000000" });
    const { ordered, result } = await rehearsed(url);
    expect(ordered).toMatchObject({ rehearsal: true, recorded: false, status: "incomplete", price: "0.001" });
    expect(result, JSON.stringify(result.checks)).toMatchObject({
      ...{ id: ordered.id, status: "complete", level: "full", spent: "0.003", passing_code: null },
      next: { method: "POST", url: `${service.url}/test/seller`, cost: "1.00" },
    });
    expect(await chain.usdcBalance(honest.payTo)).toBe(3_000n);
    await expectNoTrace(honest.url);
  });

  test("A faulty seller's rehearsal explains the failures and their remedies, and shows a shop that passes", async () => {
    const { replayed } = shops;
    const url = `${replayed.url}/haiku`;
    replayed.place(await lineFor(service.url, url, payer));
    const { result } = await rehearsed(url);
    expect(outcomesOf(result).replay).toBe("fail");
    const findings = (result.checks as { findings: { holds: boolean; remedy: object | null }[] }[]).flatMap(
      (check) => check.findings,
    );
    const failed = findings.filter(({ holds }) => !holds);
    expect(failed.length).toBeGreaterThan(0);
    for (const { remedy } of failed)
      expect(remedy).toMatchObject({ text: expect.any(String), link: expect.stringMatching(/^https?:/) });
    expect(result).toMatchObject({
      level: null,
      next: { url: `${service.url}/rehearsal/seller` },
      passing_code: { file: "passing-shop.mjs", text: expect.stringContaining(SEPOLIA.id) },
    });
    expect((result.exchanges as unknown[]).length).toBeGreaterThan(10);
    await expectNoTrace(replayed.url);
  });

  test("A rehearsal is rejected without a charge for a missing line, the real network, or a lack of test money", async () => {
    const { refused } = shops;
    const url = `${refused.url}/haiku`;
    expectProblem(await unpaid(url), 422, "unacceptable");
    refused.place(await lineFor(service.url, url, payer));
    const stranger = await newPayer(chain, 2_000_000n);
    const { status, ordered } = await rehearsed(url, stranger);
    expect([status, JSON.stringify(ordered)]).toEqual([422, expect.stringContaining("bad_consent")]);
    expect(await chain.usdcBalance(stranger.address)).toBe(2_000_000n);
    expect((await send(`${service.url}/test/seller?url=${url}`)).text).toContain("paid in USDC under the scheme exact");
    const taken = { url: "https://a.example/", payTo: `0x${"5e".repeat(20)}`, amount: "170000", prefix: "/" };
    await owner.query(
      "INSERT INTO seller_rehearsal (id, origin, request, taken_at) SELECT repeat(one, 32), one, $1, now() FROM unnest(ARRAY['a', 'b']) one",
      [JSON.stringify({ ...taken, method: "GET", body: null, contentType: "application/json", other: null })],
    );
    const short = await unpaid(url);
    expectProblem(short, 503, "not_available");
    expect(short.text).toContain("short of test USDC on Base Sepolia");
    await owner.query("UPDATE seller_rehearsal SET taken_at = now() - interval '6 min' WHERE result IS NULL");
    expect((await send(`${service.url}/rehearsal/seller/${"a".repeat(32)}`)).body).toMatchObject({
      status: "interrupted",
      note: expect.stringContaining("on our side"),
    });
    expect((await unpaid(url)).status).toBe(402);
    expectProblem(await send(`${service.url}/rehearsal/seller/${"c".repeat(32)}`), 404, "not_found");
  });
});

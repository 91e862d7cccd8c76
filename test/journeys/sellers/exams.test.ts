import { createHash } from "node:crypto";
import pg from "pg";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createGrantStore, tokenSha256 } from "../../../api/sellers/orders-store.ts";
import { EXAM_PRICE } from "../../../api/sellers/products.ts";
import type { KeptEvidence } from "../../../api/sellers/published/schemas.ts";
import { createCorrections } from "../../../api/sellers/published/store.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { buyExam, EXAM_KEY, ended, lineFor, outcomesOf } from "../../support/sellers/buying.ts";
import { SELLERS_WALLET, sampleOrder, sampleResult, storeExam } from "../../support/sellers/samples.ts";
import { openShop } from "../../support/sellers/shop.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const examiner = privateKeyToAccount(EXAM_KEY).address;
await chain.fund(examiner, 20_000_000n);
const shops = {
  honest: await forFile(openShop(chain)),
  crowded: await forFile(openShop(chain)),
  replayed: await forFile(openShop(chain, "serves a replay")),
  freeHead: await forFile(openShop(chain, "HEAD is free")),
  withdrawn: await forFile(openShop(chain)),
  regretting: await forFile(openShop(chain, "serves a replay")),
  wronged: await forFile(openShop(chain)),
  refused: await forFile(openShop(chain)),
  one: await forFile(openShop(chain)),
  other: await forFile(openShop(chain, "forgets answers")),
};
const service = await forFile(
  startService({
    chain,
    config: {
      exams: { key: EXAM_KEY, daily: 50_000_000n },
      arbiterAllowedOrigins: Object.values(shops).map(({ url }) => url),
    },
  }),
);
const payer = await newPayer(chain, 50_000_000n);

test("An honest seller that names the buyer's wallet gets a public record of level full for exactly three payments", async () => {
  const { honest } = shops;
  const url = `${honest.url}/haiku`;
  honest.place(await lineFor(service.url, url, payer));
  const before = await chain.usdcBalance(honest.payTo);
  const { answer, again } = await buyExam(service.url, payer, {
    url,
    method: "POST",
    body: '{"about":"rain"}',
    other: "/sonnet",
  });
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({ status: "incomplete", price: "0.001" });
  expect(answer.headers.get("content-location")).toBe(`/exam/${answer.body.id}`);
  const record = await ended(service.url, answer.body.id);
  expect(record, JSON.stringify(record.checks)).toMatchObject({
    status: "complete",
    level: "full",
    certified: true,
    runs: 1,
  });
  expect(record).toMatchObject({ origin: honest.url, spent: "0.003", path_prefix: "/", correction: null });
  const line = `x402-exam v1 ${new URL(service.url).host} ${payer.address.toLowerCase()} / `;
  expect(record.consent).toMatchObject({ kind: "file", text: expect.stringContaining(line), path_prefix: "/" });
  expect(JSON.stringify(record)).not.toContain("about");
  expect(record.request).toMatchObject({ url, other: `${honest.url}/sonnet` });
  expect(JSON.stringify(record.checks)).toContain(`is refused at ${honest.url}/sonnet (got 402)`);
  expect(await chain.usdcBalance(honest.payTo)).toBe(before + 3_000n);
  const replay = await again();
  expect([replay.text, replay.headers.get("x-idempotent-replay")]).toEqual([answer.text, "true"]);
  const links = ["exam_url", "cert_url", "evidence_url"].map((name) => [name, record[name]]);
  expect(links).toEqual(["exam_url", "cert_url", "evidence_url"].map((name) => [name, answer.body[name]]));
  expect(record).not.toHaveProperty("evidence");
  const { text: evidence } = await send(String(answer.body.evidence_url));
  expect(createHash("sha256").update(evidence).digest("hex")).toBe(record.evidence_sha256);
  const kept = JSON.parse(evidence) as KeptEvidence;
  expect(kept.exchanges.length).toBeLessThanOrEqual(40);
  const { body } = await send(String(answer.body.cert_url));
  const settlements = body.settlements as (typeof kept.settlements & { claimed_in: number[] }[])[number][];
  expect(settlements).toMatchObject(kept.settlements);
  for (const { transaction, block, ...moved } of kept.settlements) {
    const receipt = await chain.client.getTransactionReceipt({ hash: transaction });
    expect([Number(receipt.blockNumber), receipt.status]).toEqual([block, "success"]);
    expect(moved).toMatchObject({ from: examiner.toLowerCase(), to: honest.payTo.toLowerCase(), value: "1000" });
  }
  expect(settlements.map(({ claimed_in }) => claimed_in.length > 0)).toEqual([true, true, true]);
});

test.each([
  ["replayed", "replay"],
  ["freeHead", "terms"],
] as const)("The %s seller fails the check %s in public", async (name, check) => {
  const url = `${shops[name].url}/haiku`;
  shops[name].place(await lineFor(service.url, url, payer));
  const { answer } = await buyExam(service.url, payer, { url });
  const record = await ended(service.url, answer.body.id);
  expect(outcomesOf(record)[check]).toBe("fail");
  expect(record).toMatchObject({ status: "complete", level: null, certified: false, note: null });
  expect(record.valid_until).not.toBeNull();
});

test("Two simultaneous exams from one account are kept apart", async () => {
  const both = [shops.one, shops.other];
  const records = await Promise.all(
    both.map(async (shop) => {
      const url = `${shop.url}/haiku`;
      const buyer = await newPayer(chain, 2_000_000n);
      shop.place(await lineFor(service.url, url, buyer));
      const { answer } = await buyExam(service.url, buyer, { url });
      return ended(service.url, answer.body.id);
    }),
  );
  expect(records).toMatchObject([
    { level: "full", spent: "0.003", runs: 1 },
    { level: "safe", spent: "0.003", runs: 1 },
  ]);
  expect(await Promise.all(both.map(({ payTo }) => chain.usdcBalance(payTo)))).toEqual([3_000n, 3_000n]);
});

test("Only one of five simultaneous orders for an origin is charged, and a quote that is gone causes no refund", async () => {
  const { crowded } = shops;
  const url = `${crowded.url}/haiku`;
  crowded.place(await lineFor(service.url, url, payer));
  crowded.before(({ path }) => (path === "/haiku" && crowded.requests() > 3 ? "cut" : undefined));
  const [before, ours] = [await chain.usdcBalance(payer.address), await chain.usdcBalance(examiner)];
  const body = JSON.stringify({ url });
  expect((await post(`${service.url}/test/seller`, { "content-type": "application/json" }, body)).status).toBe(402);
  const signed = await Promise.all(Array.from({ length: 5 }, () => signPayment(payer, { value: EXAM_PRICE })));
  const answers = await Promise.all(
    signed.map((one) => post(`${service.url}/test/seller`, { "content-type": "application/json", ...v2(one) }, body)),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 503, 503, 503, 503]);
  for (const { text, status } of answers) if (status === 503) expect(text).toContain("has an order that is open");
  expect(await chain.usdcBalance(payer.address)).toBe(before - EXAM_PRICE);
  const sold = answers.find(({ status }) => status === 200);
  const record = await ended(service.url, sold?.body.id);
  expect(record).toMatchObject({ status: "complete", certified: false, level: null, refund: null });
  expect(await chain.usdcBalance(examiner)).toBe(ours);
  // A later payment has to wait until the origin can be examined again.
  const [one] = signed.filter((_, place) => answers[place]?.status === 503);
  const later = await post(
    `${service.url}/test/seller`,
    { "content-type": "application/json", ...v2(one as Signed) },
    body,
  );
  expect([later.status, later.text]).toEqual([503, expect.stringContaining("cannot be examined again yet")]);
});

test("If the consent line is gone when the exam begins, the seller gets no request, and the order is not refunded", async () => {
  const { withdrawn } = shops;
  const url = `${withdrawn.url}/haiku`;
  withdrawn.place(await lineFor(service.url, url, payer), 1);
  const { answer } = await buyExam(service.url, payer, { url });
  expect(answer.status, answer.text).toBe(200);
  const record = await ended(service.url, answer.body.id);
  expect(record).toMatchObject({
    status: "interrupted",
    level: null,
    certified: false,
    valid_until: null,
    refund: null,
  });
  expect(record.note).toMatch(/gone from the origin's file when the exam began/);
  // Two files and a quote at intake, and one file for the exam.
  expect(withdrawn.requests()).toBeLessThanOrEqual(4);
  expect(await chain.usdcBalance(withdrawn.payTo)).toBe(0n);
});

test("Removing the consent line during the exam does not prevent a public FAIL", async () => {
  const { regretting } = shops;
  const url = `${regretting.url}/haiku`;
  regretting.place(await lineFor(service.url, url, payer));
  regretting.before(({ isPaid }) => (isPaid ? regretting.place(null) : undefined));
  const { answer } = await buyExam(service.url, payer, { url });
  expect(await ended(service.url, answer.body.id)).toMatchObject({ level: null, note: null, status: "complete" });
  const { body } = await send(`${service.url}/verify?origin=${regretting.url}`);
  expect(body).toMatchObject({ tested: true, verified: false, reasons: [{ code: "current_fail" }, {}] });
});

test("A correction may grant a free exam to the holder of the operator's token, if the file names the buyer", async () => {
  const { wronged } = shops;
  const [origin, url, token] = [wronged.url, `${wronged.url}/haiku`, "7".repeat(32)];
  const pool = await forFile(new pg.Pool({ connectionString: service.database.apiUrl, max: 2 }));
  const order = sampleOrder({ origin, url, payTo: wronged.payTo.toLowerCase() as `0x${string}` });
  await storeExam(pool, order, sampleResult({ level: null, endedAt: new Date(Date.now() - 11 * 60_000) }));
  const again = (given: string) =>
    post(
      `${service.url}/exam/${order.id}/again`,
      { "content-type": "application/json" },
      JSON.stringify({ token: given }),
    );
  expect((await again(token)).status).toBe(404);
  await createCorrections(pool).correct(order.id, "The examiner's node was wrong.");
  const grants = createGrantStore(pool);
  expect(await grants.grant(order.id, tokenSha256("8".repeat(32)))).toBe(true);
  expect(await grants.grant(order.id, tokenSha256(token))).toBe(true);
  expect((await again("8".repeat(32))).status).toBe(404);
  const without = await again(token);
  expect([without.status, without.text]).toEqual([422, expect.stringContaining("bad_consent")]);
  wronged.place(await lineFor(service.url, url, { address: SELLERS_WALLET }));
  const [taken, other] = await Promise.all([again(token), again(token)]);
  expect([taken.status, taken.text], taken.text).toEqual([200, other.text]);
  expect(await ended(service.url, taken.body.id)).toMatchObject({ level: "full", certified: true, again_of: order.id });
  expect((await again(token)).text).toBe(taken.text);
  expect(await grants.grant(order.id, tokenSha256("9".repeat(32)))).toBe(false);
  const correction = { free_exam: { cert_url: `${service.url}/cert/${taken.body.id}` } };
  expect((await send(`${service.url}/cert/${order.id}`)).body).toMatchObject({ correction, again_of: null });
  expect((await send(`${service.url}/cert/${taken.body.id}`)).body).toMatchObject({
    again_of: `${service.url}/cert/${order.id}`,
    fresh: true,
    bought_with: { transaction: order.settlement.transaction },
  });
});

shops.refused.place(await lineFor(service.url, `${shops.refused.url}/haiku`, payer));
const refusing = (order: Record<string, unknown>) =>
  post(`${service.url}/test/seller`, { "content-type": "application/json" }, JSON.stringify(order));

test.each([
  [{ url: "http://127.0.0.1:9/" }, "not_public"],
  [{ url: "https://user:secret@seller.example/" }, "not_public"],
  [{ url: "https://seller.example/?api_key=1" }, "not_public"],
  [{ url: `${service.url}/test/basic`, method: "POST" }, "own_service"],
  [{ url: `${shops.refused.url}/nothing` }, "not_paid"],
  [{ url: `${shops.refused.url}/haiku`, max_price: "0.000999" }, "too_dear"],
])("%j is rejected as %s before any payment", async (order, code) => {
  const { status, text } = await refusing(order);
  expect([status, text]).toEqual([422, expect.stringContaining(`${code}: `)]);
});

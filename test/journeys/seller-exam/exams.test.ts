import { createHash } from "node:crypto";
import pg from "pg";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createGrantStore } from "../../../api/adapters/postgres/grant-store.ts";
import { createCorrections } from "../../../api/adapters/postgres/published-exams.ts";
import { consentText } from "../../../api/seller-exam/consent.ts";
import { tokenSha256 } from "../../../api/seller-exam/grant.ts";
import type { KeptEvidence } from "../../../api/seller-exam/record.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { post, send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { openShop } from "../../support/seller/shop.ts";
import { buyExam, EXAM_KEY, ended, lineFor, looked, outcomesOf } from "../../support/seller-exam/buying.ts";
import { sampleOrder, sampleResult, storeExam } from "../../support/seller-exam/samples.ts";
import { PAY_TO } from "../../support/service/accounts.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const examiner = privateKeyToAccount(EXAM_KEY).address;
await chain.fund(examiner, 20_000_000n);
const shops = {
  honest: await forFile(openShop(chain)),
  signed: await forFile(openShop(chain)),
  contract: await forFile(openShop(chain)),
  fickle: await forFile(openShop(chain)),
  replayed: await forFile(openShop(chain, "serves a replay")),
  freeHead: await forFile(openShop(chain, "HEAD is free")),
  passive: await forFile(openShop(chain)),
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
      exams: { privateKey: EXAM_KEY, daily: 50_000_000n },
      arbiterAllowedOrigins: Object.values(shops).map(({ url }) => url),
    },
  }),
);
const payer = await newPayer(chain, 50_000_000n);

test("an honest seller that consents gets a public record of level full, for three payments and no more", async () => {
  const { honest } = shops;
  const url = `${honest.url}/haiku`;
  honest.place(await lineFor(service.url, url));
  const before = await chain.usdcBalance(honest.payTo);
  const { answer, again } = await buyExam(service.url, payer, {
    url,
    method: "POST",
    body: '{"about":"rain"}',
    other: "/sonnet",
  });
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({ status: "incomplete", mode: "paid", price: "0.001" });
  expect(answer.headers.get("content-location")).toBe(`/exam/${answer.body.id}`);
  const record = await ended(service.url, answer.body.id);
  expect(record, JSON.stringify(record.checks)).toMatchObject({
    status: "complete",
    level: "full",
    certified: true,
    runs: 1,
  });
  expect(record).toMatchObject({ origin: honest.url, spent: "0.003", consent: { kind: "file" }, correction: null });
  expect(record.request).toMatchObject({ url, other: `${honest.url}/sonnet` });
  expect(JSON.stringify(record.checks)).toContain(`is refused at ${honest.url}/sonnet, and got 402`);
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

test("a signature of the payee's wallet gives consent like a file", async () => {
  const { signed } = shops;
  const url = `${signed.url}/haiku`;
  const to = {
    host: new URL(service.url).host,
    origin: signed.url,
    payTo: signed.payTo.toLowerCase() as `0x${string}`,
  };
  const expires = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  const signature = await signed.account.signMessage({ message: consentText(to, expires) });
  const wrong = await post(
    `${service.url}/test/seller`,
    { "content-type": "application/json" },
    JSON.stringify({
      url,
      consent: { signature: await payer.signMessage({ message: consentText(to, expires) }), expires },
    }),
  );
  expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining("bad_consent")]);
  const { answer } = await buyExam(service.url, payer, { url, consent: { signature, expires } });
  expect(answer.body, answer.text).toMatchObject({ mode: "paid" });
  expect(await ended(service.url, answer.body.id)).toMatchObject({ level: "full", consent: { kind: "signature" } });
});

/** Machine code that takes every signature (ERC-1271). */
const TAKES = `0x7f1626ba7e${"00".repeat(28)}60005260206000f3`;

test("a payee that is a contract consents by its word, when the exam is ordered and when it begins", async () => {
  const { contract } = shops;
  const url = `${contract.url}/haiku`;
  await chain.client.request({ method: "anvil_setCode", params: [contract.payTo, TAKES] } as never);
  const expires = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  const { answer } = await buyExam(service.url, payer, { url, consent: { signature: "0x1234", expires } });
  expect(answer.body, answer.text).toMatchObject({ mode: "paid" });
  const record = await ended(service.url, answer.body.id);
  expect(record).toMatchObject({ level: "full", note: null, consent: { kind: "signature", signature: "0x1234" } });
});

/** Machine code that takes every signature until we have been paid (ERC-1271): a balance of USDC is read. */
const takesBelow = (balance: bigint): string =>
  [
    "0x6370a0823160e01b60005273",
    ...[PAY_TO.slice(2), "6004526020600060246000", "73", chain.network.usdc.address.slice(2), "5afa50"],
    ...["6000517f", balance.toString(16).padStart(64, "0"), "1160705760006000fd5b", TAKES.slice(2)],
  ].join("");

test("a contract that takes its consent back before the exam begins leaves the record without a certificate", async () => {
  const { fickle } = shops;
  const url = `${fickle.url}/haiku`;
  const code = takesBelow((await chain.usdcBalance(PAY_TO)) + 1n);
  await chain.client.request({ method: "anvil_setCode", params: [fickle.payTo, code] } as never);
  const expires = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  const { answer } = await buyExam(service.url, payer, { url, consent: { signature: "0x1234", expires } });
  expect(answer.body, answer.text).toMatchObject({ mode: "paid" });
  const record = await ended(service.url, answer.body.id);
  expect(record).toMatchObject({ status: "complete", certified: false, level: null, spent: "0.00", valid_until: null });
  expect(record.note).toMatch(/no longer stood/);
  expect(await chain.usdcBalance(fickle.payTo)).toBe(0n);
});

test.each([
  ["replayed", "replay"],
  ["freeHead", "terms"],
] as const)("the seller with a fault that is %s fails %s, and the record says so in public", async (name, check) => {
  const url = `${shops[name].url}/haiku`;
  shops[name].place(await lineFor(service.url, url));
  const { answer } = await buyExam(service.url, payer, { url });
  const record = await ended(service.url, answer.body.id);
  expect(outcomesOf(record)[check]).toBe("fail");
  expect(record).toMatchObject({ status: "complete", level: null, certified: false, note: null });
  expect(record.valid_until).not.toBeNull();
});

test("two exams at once on one account are told apart", async () => {
  const both = [shops.one, shops.other];
  const records = await Promise.all(
    both.map(async (shop) => {
      const url = `${shop.url}/haiku`;
      shop.place(await lineFor(service.url, url));
      const { answer } = await buyExam(service.url, await newPayer(chain, 2_000_000n), { url });
      return ended(service.url, answer.body.id);
    }),
  );
  expect(records).toMatchObject([
    { level: "full", spent: "0.003", runs: 1 },
    { level: null, spent: "0.003", runs: 1 },
  ]);
  expect(await Promise.all(both.map(({ payTo }) => chain.usdcBalance(payTo)))).toEqual([3_000n, 3_000n]);
});

test("without consent only unpaid requests are sent, and the record certifies nothing", async () => {
  const { passive } = shops;
  const url = `${passive.url}/haiku`;
  expect(await looked(service.url, url)).toMatchObject({ mode: "passive", refused: null, not_now: null });
  const before = passive.requests();
  const { answer } = await buyExam(service.url, payer, { url });
  expect(answer.body).toMatchObject({ mode: "passive" });
  const record = await ended(service.url, answer.body.id);
  expect(record).toMatchObject({ level: null, certified: false, spent: "0.00", valid_until: null, consent: null });
  expect(outcomesOf(record)).toMatchObject({ terms: "pass", purchase: "not_applicable", forgery: "not_applicable" });
  expect(passive.requests() - before).toBeLessThanOrEqual(6);
  expect(await chain.usdcBalance(passive.payTo)).toBe(0n);
  const { transaction } = record.paid as { transaction: string };
  const { body: receipt } = await send(`${service.url}/receipt?tx=${transaction}`);
  expect(receipt).toMatchObject({ purchases: [{ resource: `${service.url}/test/seller`, record_url: null }] });
  // It was just examined: another buyer has to wait.
  const next = await buyExam(service.url, payer, { url });
  expect([next.answer.status, next.answer.text]).toEqual([503, expect.stringContaining("left alone")]);
});

test("a consent that is gone when the exam begins leaves the record without a certificate, and nothing is paid", async () => {
  const { withdrawn } = shops;
  const url = `${withdrawn.url}/haiku`;
  const line = await lineFor(service.url, `${withdrawn.url}/sonnet`);
  withdrawn.place(line, 1);
  const { answer } = await buyExam(service.url, payer, { url });
  expect(answer.body).toMatchObject({ mode: "paid" });
  const record = await ended(service.url, answer.body.id);
  expect(record).toMatchObject({ status: "complete", level: null, certified: false, valid_until: null, spent: "0.00" });
  expect(record.note).toMatch(/consent no longer stood when the exam began/);
  expect(await chain.usdcBalance(withdrawn.payTo)).toBe(0n);
});

test("a consent that is taken away during the exam keeps no FAIL unpublished", async () => {
  const { regretting } = shops;
  const url = `${regretting.url}/haiku`;
  regretting.place(await lineFor(service.url, url));
  regretting.before(({ isPaid }) => (isPaid ? regretting.place(null) : undefined));
  const { answer } = await buyExam(service.url, payer, { url });
  expect(await ended(service.url, answer.body.id)).toMatchObject({ level: null, note: null, mode: "paid" });
  const { body } = await send(`${service.url}/verify?origin=${regretting.url}`);
  expect(body).toMatchObject({ tested: true, verified: false, reasons: [{ code: "current_fail" }, {}] });
});

test("a correction may grant one exam free of charge, to whom the operator gave the token, and with consent", async () => {
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
  expect([without.status, without.text]).toEqual([422, expect.stringContaining("consent")]);
  wronged.place(await lineFor(service.url, url));
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

const refusing = (order: Record<string, unknown>) =>
  post(`${service.url}/test/seller`, { "content-type": "application/json" }, JSON.stringify(order));

test.each([
  [{ url: "http://127.0.0.1:9/" }, "not_public"],
  [{ url: "http://[::ffff:127.0.0.1]/" }, "not_public"],
  [{ url: "http://169.254.169.254/latest/meta-data" }, "not_public"],
  [{ url: "https://user:secret@seller.example/" }, "not_public"],
  [{ url: "https://seller.example:8443/" }, "not_public"],
  [{ url: "https://seller.example/?api_key=1" }, "not_public"],
  [{ url: "https://router.local/" }, "not_public"],
  [{ url: "ftp://seller.example/" }, "not_public"],
  [{ url: `${service.url}/test/basic`, method: "POST" }, "own_service"],
  [{ url: `${shops.refused.url}/nothing` }, "not_paid"],
  [{ url: `${shops.refused.url}/haiku`, max_price: "0.000999" }, "too_dear"],
])("%j is refused as %s before anybody is asked to pay", async (order, code) => {
  const { status, text } = await refusing(order);
  expect([status, text]).toEqual([422, expect.stringContaining(`${code}: `)]);
});

import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { parseConfig } from "../../../api/config.ts";
import { consentText } from "../../../api/seller-exam/consent.ts";
import { EXAM_PRICE, mostSpent } from "../../../api/seller-exam/products.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { openShop } from "../../support/seller/shop.ts";
import { EXAM_KEY, lineFor } from "../../support/seller-exam/buying.ts";
import { completeEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const shops = { poor: await forFile(openShop(chain)), wallet: await forFile(openShop(chain)) };
const arbiterAllowedOrigins = Object.values(shops).map(({ url }) => url);
/** A day's ceiling that one exam of the shop does not fit under, by one unit. */
const daily = mostSpent(1_000n) - 1n;
const exams = { privateKey: EXAM_KEY, daily } as const;
const service = await forFile(startService({ chain, jobs: false, config: { exams, arbiterAllowedOrigins } }));
const order = (body: string) => post(`${service.url}/test/seller`, { "content-type": "application/json" }, body);

test("a day's ceiling that does not suffice is answered 503 with a time to try again, before anybody pays", async () => {
  const { poor } = shops;
  const url = `${poor.url}/haiku`;
  poor.place(await lineFor(service.url, url));
  await chain.fund(privateKeyToAccount(EXAM_KEY).address, 20_000_000n);
  const refused = await order(JSON.stringify({ url }));
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "120"]);
  expect(refused.text).toContain("Exams may spend 0.006001 USDC in 24 hours");
});

/** Machine code that takes every signature (ERC-1271), and one that takes none. */
const TAKES = `0x7f1626ba7e${"00".repeat(28)}60005260206000f3`;
const REFUSES = "0x60006000fd";

test.each([
  [TAKES, 200],
  [REFUSES, 422],
])("a payee that is a contract consents by its own word: %s", async (code, status) => {
  const { wallet } = shops;
  const payTo = wallet.payTo.toLowerCase() as `0x${string}`;
  await chain.client.request({ method: "anvil_setCode", params: [payTo, code] } as never);
  const url = `${wallet.url}/haiku`;
  const expires = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  expect(consentText({ host: "x", origin: wallet.url, payTo }, expires)).toContain(payTo);
  const answer = await order(JSON.stringify({ url, consent: { signature: "0x1234", expires } }));
  // 503: the consent was taken, and the day's ceiling stands in the way.
  expect([answer.status, answer.text]).toEqual(
    status === 200 ? [503, expect.stringContaining("24 hours")] : [422, expect.stringContaining("bad_consent: ")],
  );
});

const payer = await newPayer(chain, 2_000_000n);
const signed = await signPayment(payer, { value: EXAM_PRICE });
const DEEP = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;

test.each([
  "",
  "null",
  "7",
  "[]",
  '"http://seller.example/"',
  "{",
  "{}",
  DEEP,
  `{"url":${DEEP}}`,
  '{"url":null}',
  '{"url":["http://seller.example/"]}',
  '{"url":{"toString":"x"}}',
  '{"url":"http://seller.example/","__proto__":{"settled":{}}}',
  '{"url":"http://seller.example/","settled":{"payTo":"0x00","amount":"1","mode":"paid","consent":null}}',
  '{"url":"http://seller.example/","maxPrice":"1"}',
  '{"url":"http://seller.example/","max_price":-1}',
  '{"url":"http://seller.example/","other":""}',
  '{"url":"http://seller.example/","other":["/sonnet"]}',
  '{"url":"http://seller.example/","other":"http://elsewhere.example/sonnet"}',
  '{"url":"http://seller.example/","other":"//127.0.0.1/sonnet"}',
  '{"url":"http://seller.example/","max_price":"0x10"}',
  '{"url":"http://seller.example/","max_price":"1e9"}',
  '{"url":"http://seller.example/","method":"get"}',
  '{"url":"http://seller.example/","method":"CONNECT"}',
  '{"url":"http://seller.example/","method":"GET","body":"x"}',
  '{"url":"http://seller.example/","content_type":"a/b\\r\\nhost: inside"}',
  '{"url":"http://seller.example/","consent":{}}',
  '{"url":"http://seller.example/","consent":{"signature":"0x","expires":"2030-01-01T00:00:00Z"}}',
  `{"url":"http://seller.example/","consent":{"signature":"0x${"ab".repeat(2_049)}","expires":""}}`,
  `{"url":"http://seller.example/${"a".repeat(2_100)}"}`,
  `{"url":"http://seller.example/","body":${JSON.stringify("x".repeat(9_000))}}`,
  '{"url":"http://seller.example\\r\\nhost: inside/"}',
  '{"url":"http://\\u0000/"}',
  '{"url":"//seller.example/"}',
  '{"url":"http://seller.example/","consent":{"signature":"0x12","expires":"\\ud800"}}',
])("the order %# is refused with its payment, which stays unspent", async (body) => {
  const headers = { "content-type": "application/json", ...v2(signed) };
  const { status, text } = await post(`${service.url}/test/seller`, headers, body);
  // 503: nobody was asked for a quote, since no payment pays for that.
  expect([400, 413, 422, 503], text).toContain(status);
  expect(await chain.usdcBalance(payer.address)).toBe(2_000_000n);
});

test("a URL in the query is read as carefully", async () => {
  for (const url of ["", "%00", "http://", "javascript:alert(1)", "http://127.0.0.1/", "x".repeat(3_000)]) {
    const { status } = await send(`${service.url}/test/seller?url=${encodeURIComponent(url)}`);
    expect([200, 400]).toContain(status);
  }
});

const GOOD = completeEnvironment("A".repeat(43));
const parsed = (more: Record<string, string>) => parseConfig({ ...GOOD, ...more });

test("without a key no exams are sold; with one up to 50 USDC a day, or what is set", () => {
  expect(parsed({})).toMatchObject({ exams: null });
  expect(parsed({ EXAM_PRIVATE_KEY: EXAM_KEY })).toMatchObject({ exams: { privateKey: EXAM_KEY, daily: 50_000_000n } });
  const none = { EXAM_PRIVATE_KEY: EXAM_KEY, EXAM_DAILY_SPEND: "0" };
  expect(parsed(none)).toMatchObject({ exams: { daily: 0n } });
});

test.each([
  [{ EXAM_PRIVATE_KEY: "e8" }, /^EXAM_PRIVATE_KEY .*0x and 64 hex digits/m],
  [{ EXAM_PRIVATE_KEY: `${EXAM_KEY}00` }, /^EXAM_PRIVATE_KEY /m],
  [{ EXAM_DAILY_SPEND: "-1" }, /^EXAM_DAILY_SPEND /m],
  [{ EXAM_DAILY_SPEND: "1.5" }, /^EXAM_DAILY_SPEND /m],
  [{ EXAM_DAILY_SPEND: "1000000000001" }, /^EXAM_DAILY_SPEND /m],
])("the settings %j are refused, without the key in the message", (more, message) => {
  const config = parsed(more);
  expect(config).toMatchObject({ problem: expect.stringMatching(message) });
  expect(JSON.stringify(config)).not.toContain(EXAM_KEY.slice(2));
});

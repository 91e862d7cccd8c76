import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { parseConfig } from "../../../api/platform/config/config.ts";
import { EXAM_PRICE, mostSpent } from "../../../api/sellers/products.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { EXAM_KEY, inspectSeller, lineFor } from "../../support/sellers/buying.ts";
import { openShop } from "../../support/sellers/shop.ts";
import { completeEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const shops = {
  poor: await forFile(openShop(chain)),
  named: await forFile(openShop(chain)),
  tenant: await forFile(openShop(chain)),
  wrong: await forFile(openShop(chain)),
};
const arbiterAllowedOrigins = Object.values(shops).map(({ url }) => url);
/** A daily ceiling one unit below the cost of one exam of the shop. */
const daily = mostSpent(1_000n) - 1n;
const exams = { key: EXAM_KEY, daily } as const;
const service = await forFile(startService({ chain, jobs: false, config: { exams, arbiterAllowedOrigins } }));
const payer = await newPayer(chain, 2_000_000n);
const order = (body: string) => post(`${service.url}/test/seller`, { "content-type": "application/json" }, body);

test("An insufficient daily ceiling gets 503 with Retry-After before any payment", async () => {
  const { poor } = shops;
  const url = `${poor.url}/haiku`;
  poor.place(await lineFor(service.url, url, payer));
  await chain.fund(privateKeyToAccount(EXAM_KEY).address, 20_000_000n);
  const refused = await order(JSON.stringify({ url }));
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "120"]);
  expect(refused.text).toContain("Exams may spend 0.006001 USDC in 24 hours");
});

test("A wallet that the origin's file does not name is refused an exam before it is charged", async () => {
  const { named } = shops;
  const url = `${named.url}/haiku`;
  const [seller, competitor] = [await newPayer(chain, 2_000_000n), await newPayer(chain, 2_000_000n)];
  const at = (name: string) => `${named.url}/${name}`;
  const before = named.requests();
  const without = await order(JSON.stringify({ url }));
  expect([without.status, without.text]).toEqual([
    422,
    expect.stringMatching(/bad_consent: .*has no line that lets any wallet/),
  ]);
  // Only the file was requested.
  expect(named.requests() - before).toBeLessThanOrEqual(1);
  named.place(await lineFor(service.url, url, seller));
  for (const body of [JSON.stringify({ url }), JSON.stringify({ url, other: at("sonnet") })]) {
    expect((await order(body)).status).toBe(503);
    const signed = await signPayment(competitor, { value: EXAM_PRICE });
    const paid = await post(`${service.url}/test/seller`, { "content-type": "application/json", ...v2(signed) }, body);
    const address = competitor.address.toLowerCase();
    expect([paid.status, paid.text]).toEqual([422, expect.stringContaining(`no line that lets ${address} buy`)]);
    expect(paid.text).toContain(`x402-exam v1 ${new URL(service.url).host} ${address} /`);
    expect(await chain.usdcBalance(competitor.address)).toBe(2_000_000n);
  }
});

test("A wallet named for one path cannot buy an exam of another path in any spelling", async () => {
  const { tenant } = shops;
  const buyer = await newPayer(chain, 2_000_000n);
  const line = await lineFor(service.url, `${tenant.url}/haiku`, buyer);
  tenant.place(line.replace(" / ", " /haiku "));
  const before = tenant.requests();
  for (const path of [
    "/sonnet",
    "/haikus",
    "/haiku/../sonnet",
    "/haiku/%2e%2e/sonnet",
    "/haiku%2f..%2fsonnet",
    "/HAIKU",
  ]) {
    const refused = await order(JSON.stringify({ url: `${tenant.url}${path}` }));
    expect([path, refused.status, refused.text]).toEqual([path, 422, expect.stringContaining("bad_consent: ")]);
  }
  expect(tenant.requests() - before).toBeLessThanOrEqual(6);
  const other = await order(JSON.stringify({ url: `${tenant.url}/haiku`, other: "/sonnet" }));
  expect([other.status, other.text]).toEqual([422, expect.stringContaining("/haiku and /sonnet")]);
});

test("The free route shows the line to add, the wallets that the file names, and faults in lines to this service", async () => {
  const { wrong } = shops;
  const [url, host, wallet] = [`${wrong.url}/haiku`, new URL(service.url).host, `0x${"ab".repeat(20)}`];
  expect(await inspectSeller(service.url, url)).toMatchObject({
    refused: { code: "bad_consent" },
    consent: {
      file: {
        url: `${wrong.url}/.well-known/x402-exam.txt`,
        line: expect.stringMatching(new RegExp(`^x402-exam v1 ${host} <wallet> / \\d{4}-\\d\\d-\\d\\dT[\\d:]{8}Z$`)),
      },
      lines: [],
      problems: [],
    },
  });
  wrong.place(`x402-exam v1 other.example nonsense\nx402-exam v1 ${host} ${wallet} /../ 2030-01-01T00:00:00Z`);
  const shown = await inspectSeller(service.url, url, wallet);
  expect(shown).toMatchObject({
    refused: { code: "bad_consent", detail: expect.stringContaining("Line 3: the path prefix") },
    consent: { problems: [{ line: 3, problem: expect.stringContaining("is not plain") }] },
  });
  wrong.place((shown.consent as { file: { line: string } }).file.line);
  expect(await inspectSeller(service.url, url, wallet)).toMatchObject({
    ...{ refused: null, path_prefix: "/", pay_to: wrong.payTo.toLowerCase() },
    consent: { lines: [{ wallet, path_prefix: "/" }], problems: [] },
  });
  const { status, body } = await send(`${service.url}/test/seller?url=${url}&wallet=0x12`);
  expect([status, body.detail]).toEqual([400, expect.stringContaining("wallet: expected a wallet")]);
});

const signed = await signPayment(payer, { value: EXAM_PRICE });
const DEEP = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;

test.each([
  "",
  '"http://seller.example/"',
  DEEP,
  '{"url":null}',
  '{"url":"http://seller.example/","__proto__":{"settled":{}}}',
  '{"url":"http://seller.example/","settled":{"payTo":"0x00","amount":"1","consent":null}}',
  '{"url":"http://seller.example/","method":"GET","body":"x"}',
  `{"url":"http://seller.example/","body":${JSON.stringify("x".repeat(9_000))}}`,
  '{"url":"http://seller.example\\r\\nhost: inside/"}',
  '{"url":"http://\\u0000/"}',
])("Order %# is refused, and its payment is not spent", async (body) => {
  const headers = { "content-type": "application/json", ...v2(signed) };
  const { status, text } = await post(`${service.url}/test/seller`, headers, body);
  // 503 means that no quote was requested, because no payment covers it.
  expect([400, 413, 422, 503], text).toContain(status);
  expect(await chain.usdcBalance(payer.address)).toBe(2_000_000n);
});

const GOOD = completeEnvironment("A".repeat(43));
const parsed = (more: Record<string, string>) => parseConfig({ ...GOOD, ...more });

test("Exams are sold only with a key, with a daily ceiling of 50 USDC by default", () => {
  expect(parsed({})).toMatchObject({ exams: null });
  expect(parsed({ EXAM_PRIVATE_KEY: EXAM_KEY })).toMatchObject({ exams: { key: EXAM_KEY, daily: 50_000_000n } });
  const none = { EXAM_PRIVATE_KEY: EXAM_KEY, EXAM_DAILY_SPEND: "0" };
  expect(parsed(none)).toMatchObject({ exams: { daily: 0n } });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { consentLine, isUnder, readConsent, widest } from "../../../api/sellers/consent.ts";
import { evidenceOf, keptBody, keptChecks } from "../../../api/sellers/evidence.ts";
import { costOf, noRoom, unfit } from "../../../api/sellers/exam-account.ts";
import { EXAM_REQUEST, urlRefusal } from "../../../api/sellers/exam-request.ts";
import { EXAM_PRICE, MOST_OPEN, mostSpent, SELLER_CEILING } from "../../../api/sellers/products.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { sampleOrder } from "../../support/sellers/samples.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test("The exam price covers everything that an exam can spend at the price ceiling", () => {
  expect(mostSpent(SELLER_CEILING)).toBeLessThanOrEqual((EXAM_PRICE * 91n) / 100n);
});

const NOW = new Date("2026-07-01T00:00:00Z");
const HOST = "trust.example";
const WALLET = `0x${"5e".repeat(20)}` as const;
const LINE = { wallet: WALLET, prefix: "/shop", expires: "2026-08-01T00:00:00Z" } as const;
const lineOf = (over: Partial<Record<keyof typeof LINE, string>> = {}, host = HOST) =>
  consentLine(host, { ...LINE, ...over });
const READ = { wallet: WALLET, prefix: "/shop/", expires: LINE.expires };

test.each([
  [lineOf(), READ],
  [`# us\r\n  ${lineOf()}  # until August\r\n`, READ],
  [`\ufeff${lineOf({}, "TRUST.example")}`, READ],
  [lineOf({ wallet: `0x${"5E".repeat(20)}` }), READ],
  [lineOf({ prefix: "/" }), { prefix: "/" }],
  [lineOf({ prefix: "/~mal/v1.2/" }), { prefix: "/~mal/v1.2/" }],
  [lineOf({ expires: "2026-07-01T00:00:01Z" }), {}],
  [lineOf({ expires: "2026-09-29T02:00:00.000+02:00" }), {}],
])("The file %j names a buyer", (file, read) => {
  expect(readConsent(bytes(file), HOST, NOW)).toMatchObject({ lines: [read], faults: [] });
});

test.each([
  ["", null],
  [`# ${lineOf()}`, null],
  [lineOf({}, "other.example"), null],
  [`<p>${lineOf()}</p>`, null],
  [`${"\n".repeat(250)}${lineOf()}`, null],
  [`${"#".repeat(70_000)}\n${lineOf()}`, null],
  [`x402-exam v1 ${HOST} https://seller.example ${WALLET}`, /^has 5 fields; expected the six of x402-exam v1/],
  [`x402-exam ${HOST} ${WALLET} / ${LINE.expires}`, /^expected x402-exam v1 <our host>/],
  [`x402-exam v2 ${HOST} ${WALLET} / ${LINE.expires}`, /^expected x402-exam v1/],
  [`${lineOf()} more`, /^has 7 fields/],
  [lineOf({ wallet: "0x5e" }), /"0x5e" is not an address/],
  [lineOf({ wallet: "0xAb5801a7D398351b8bE11C439e05C5B3259aeC9b".replace("aeC9b", "aec9B") }), /checksum/],
  [lineOf({ prefix: "shop" }), /path prefix "shop" is not plain; expected \/ for the whole/],
  [lineOf({ prefix: "/a/../b" }), /is not plain/],
  [lineOf({ prefix: "//" }), /is not plain/],
  [lineOf({ prefix: "/a%2fb" }), /is not plain/],
  [lineOf({ prefix: "/a?b" }), /is not plain/],
  [lineOf({ prefix: `/${"a".repeat(300)}` }), /is not plain/],
  [lineOf({ expires: "2026-07-01T00:00:00Z" }), /expired at 2026-07-01T00:00:00Z/],
  [lineOf({ expires: "2026-09-29T00:00:01Z" }), /within 90 days, like 2026-07-31T00:00:00Z/],
  [lineOf({ expires: "2026-08-01" }), /"2026-08-01" is not an ISO 8601 date-time; expected one like/],
  [lineOf({ expires: "2026-02-30T00:00:00Z" }), /is not an ISO/],
])("The file %j names no buyer, and a faulty line to this service is reported", (file, fault) => {
  const { lines, faults } = readConsent(bytes(file), HOST, NOW);
  expect(lines).toEqual([]);
  if (fault === null) expect(faults).toEqual([]);
  else expect(faults).toEqual([{ line: 1, problem: expect.stringMatching(fault) }]);
});

test.each([
  ["/", "/../anything%2f//", true],
  ["/shop/", "/shop", true],
  ["/shop/", "/shop?/../..", true],
  ["/shop/", "/shop/haiku", true],
  ["/shop/", "/%73hop/haiku", true],
  ["/shop/", "/shop/caf%C3%A9", true],
  ["/shop/", "/shopping", false],
  ["/shop/", "/SHOP/haiku", false],
  ["/shop/", "/shop/../admin", false],
  ["/shop/", "/shop/%2e%2e/admin", false],
  ["/shop/", "/shop/.%2E/admin", false],
  ["/shop/", "/shop%2f..%2fadmin", false],
  ["/shop/", "/shop/%252e%252e/admin", false],
  ["/shop/", "/shop/..\\admin", false],
  ["/shop/", "/shop/..%5cadmin", false],
  ["/shop/", "/shop/..;/admin", false],
  ["/shop/", "/shop/..%3b/admin", false],
  ["/shop/", "/shop//admin", false],
  ["/shop/", "/shop/.%20./admin", false],
  ["/shop/", "/shop/..%00/admin", false],
  ["/shop/", "/shop/%c0%ae%c0%ae/admin", false],
  ["/shop/", "/shop/\uff0e\uff0e/admin", false],
  ["/shop/", "/shop/\uff0e\uff0e\uff0fadmin", false],
])("The prefix %s covers the path %s: %s", (prefix, path, isIn) => {
  expect(isUnder(prefix, new URL(`https://seller.example${path}`).href)).toBe(isIn);
});

test("The widest line of a wallet that covers both the order and the other route counts", () => {
  const { lines } = readConsent(
    bytes(["/", "/shop", "/shop/haiku"].map((prefix) => lineOf({ prefix })).join("\n")),
    HOST,
    NOW,
  );
  const url = "https://seller.example/shop/haiku";
  expect(widest(lines, { url, other: null })?.prefix).toBe("/");
  expect(widest(lines.slice(1), { url, other: null })?.prefix).toBe("/shop/");
  expect(widest(lines.slice(1), { url, other: "https://seller.example/else" })).toBeNull();
});

const SETTINGS = { baseUrl: "https://trust.example", ownHost: "trust.example", allowedOrigins: [] };

test.each([
  [{ url: "https://seller.example/a#b" }, { url: "https://seller.example/a", method: "GET", body: null }],
  [
    { url: "https://seller.example", body: "x" },
    { method: "POST", contentType: "application/json" },
  ],
  [{ url: "https://seller.example", max_price: "0.1" }, { maxPrice: "100000" }],
  [{ url: "https://seller.example", max_price: "9.5" }, { maxPrice: `${SELLER_CEILING}` }],
  [{ url: "https://seller.example/haiku" }, { other: null }],
  [{ url: "https://seller.example/haiku", other: "/sonnet#2" }, { other: "https://seller.example/sonnet" }],
])("The order %j is parsed as %j", (given, read) => {
  expect(EXAM_REQUEST.parse(given)).toMatchObject({ settled: null, ...read });
});

test.each([
  [{}],
  [{ url: "https://seller.example", max_price: "1e3" }],
  [{ url: `https://seller.example/${"a".repeat(2_048)}` }],
  [{ url: "https://seller.example", method: "HEAD" }],
  [{ url: "https://seller.example", content_type: "text/plain\r\nx: y" }],
  [{ url: "https://seller.example", body: "x".repeat(8_193) }],
  [{ url: "https://seller.example", settled: { amount: "1" } }],
  [{ url: "https://seller.example", consent: { signature: "0x1", expires: "" } }],
])("The order %j is malformed", (given) => {
  const { error } = EXAM_REQUEST.safeParse(given);
  expect(error?.issues.some(({ code }) => code !== "custom")).toBe(true);
});

test.each([
  ["http://seller.example/sonnet", {}],
  ["//elsewhere.example/sonnet", {}],
  ["https://me:secret@seller.example/sonnet", {}],
  ["https://127.0.0.1/sonnet", {}],
  ["/haiku?again", {}],
])("The other route %s is refused without a charge for an order with %j", (other, more) => {
  const { error } = EXAM_REQUEST.safeParse({ url: "https://seller.example/haiku", other, ...more });
  expect(error?.issues).toMatchObject([{ code: "custom", path: ["other"] }]);
});

test("The service's host is refused in every spelling", () => {
  for (const url of ["https://trust.example/test/basic", "https://TRUST.example:443/", "http://trust.example"])
    expect(urlRefusal(url, SETTINGS)?.code).toBe("own_service");
});

const order = sampleOrder();
const FROM = `0x${"aa".repeat(20)}` as const;
const AUTHORIZATION = {
  from: FROM,
  to: order.payTo,
  value: order.amount,
  validAfter: 100n,
  validBefore: 200n,
  nonce: `0x${"00".repeat(32)}`,
} as const;

const OTHER = { to: `0x${"bb".repeat(20)}` } as const;

test.each([
  ["as quoted", {}, { cost: order.amount, refused: null }],
  ["for more", { value: order.amount + 1n }, { cost: order.amount + 1n, refused: /more than/ }],
  ["held by an escrow", { to: COMMERCE_PAYMENTS.collector }, { cost: order.amount, refused: null }],
  [
    "held by an escrow, for more",
    { to: COMMERCE_PAYMENTS.collector, value: order.amount + 1n },
    { cost: order.amount + 1n, refused: /more than/ },
  ],
  ["for another recipient", OTHER, { cost: order.amount, refused: /another recipient/ }],
  ["to ourselves", { to: FROM, value: 10n ** 9n }, { cost: 0n, refused: null }],
  ["that is never valid", { ...OTHER, validBefore: 101n, value: 10n ** 9n }, { cost: 0n, refused: null }],
  ["that is valid for one second", { validBefore: 102n }, { cost: order.amount, refused: null }],
  ["from another account", { from: order.payTo }, { cost: 0n, refused: /another account/ }],
])("An authorization %s has a known cost and is signed only if it fits the order", (_, change, { cost, refused }) => {
  const authorization = { ...AUTHORIZATION, ...change };
  expect(costOf(authorization)).toBe(cost);
  const wrong = unfit(authorization, order, FROM);
  if (refused === null) expect(wrong).toBeNull();
  else expect(wrong).toMatch(refused);
});

const MEANS = { open: 0n, openExams: 0, owed: 0n, kept: 0n, signed: 0n, balance: 10_000_000n, daily: 10_000_000n };
const WORST = mostSpent(1_000n);

test.each([
  ["plenty", {}, null],
  ["exactly enough", { balance: WORST }, null],
  ["one unit too little", { balance: WORST - 1n }, /short of funds/],
  ["one unit promised to others", { balance: WORST, open: 1n }, /short of funds/],
  ["one unit owed to a buyer", { balance: WORST, owed: 1n }, /short of funds/],
  ["one unit signed by an ended exam", { balance: WORST, kept: 1n }, /short of funds/],
  ["a daily ceiling that already includes it", { daily: WORST, kept: 1n }, null],
  ["a daily ceiling that just suffices", { daily: WORST }, null],
  ["one unit of a sufficient daily ceiling used", { daily: WORST, signed: 1n }, /24 hours/],
  ["room for one more exam", { openExams: MOST_OPEN - 1 }, null],
  ["the most exams already open", { openExams: MOST_OPEN }, /open/],
])("With %s, an exam is sold or refused with the reason", (_, means, refused) => {
  const why = noRoom({ ...MEANS, ...means }, 1_000n);
  if (refused === null) expect(why).toBeNull();
  else expect(why).toMatch(refused);
});

const payment = (nonce: string, signature: string) =>
  Buffer.from(JSON.stringify({ payload: { signature, authorization: { nonce } } })).toString("base64");
const exchange = (header: string, body: Uint8Array, headers: Record<string, string> = {}) => ({
  number: 1,
  request: { method: "GET", url: "https://seller.example/", headers: { "payment-signature": header }, body: null },
  answer: { status: 200, headers, body },
  failure: null,
});

test("A payment that can still be submitted is removed from the evidence, even where the seller repeats it", () => {
  const [live, spent] = [`0x${"ab".repeat(65)}`, `0x${"cd".repeat(65)}`];
  const [one, other] = [payment("0x01", live), payment("0x02", spent)];
  const exchanges = [
    exchange(one, bytes(`${live.toUpperCase()} ${one}`), { "x-echo": one }),
    exchange(other, bytes(spent)),
  ];
  const text = evidenceOf({ exchanges, settlements: [] }, (nonce) => nonce === "0x02");
  expect(text.toLowerCase()).not.toContain("ab".repeat(65));
  expect(text).not.toContain(one);
  expect(text).toContain(other);
  expect(text).toContain(spent);
  expect(JSON.parse(text).exchanges).toHaveLength(2);
});

test("Any seller response becomes well-formed JSON evidence of bounded size without U+0000", () => {
  const anything = fc.tuple(fc.uint8Array({ maxLength: 6_000 }), fc.string({ unit: "binary" }), fc.string());
  fc.assert(
    fc.property(anything, ([body, value, name]) => {
      const exchanges = [exchange(payment("0x01", "0x00"), body, { [name]: `${value}\ud800\u0000` })];
      const text = evidenceOf({ exchanges, settlements: [] }, () => true);
      expect(text.isWellFormed()).toBe(true);
      expect(text.length).toBeLessThan(40_000);
      expect(JSON.stringify(JSON.parse(text))).not.toMatch(/\\u0000|\\ud[89a-f]/i);
    }),
  );
});

test.each([
  [bytes("a\tb\n"), "a\tb\n"],
  [bytes("a\u0000b"), null],
  [Uint8Array.of(0xff, 0xfe), null],
  [bytes(`${"a".repeat(4_095)}é`), "a".repeat(4_095)],
])("A text body is stored as text and any other body in base64", (body, text) => {
  const kept = keptBody(body);
  expect(kept.text).toBe(text);
  expect(kept.base64 === null).toBe(text !== null);
  expect(kept).toMatchObject({ bytes: body.length, isWhole: body.length <= 4_096 });
});

test("A buyer's query and body appear only as digests in evidence and statements", () => {
  const request = {
    method: "POST",
    url: "https://seller.example/haiku?attacker=words",
    headers: {},
    body: "attacker words",
  };
  const exchanges = [{ number: 1, request, answer: null, failure: "no answer" }];
  const text = evidenceOf({ exchanges, settlements: [] }, () => true);
  expect(text).not.toContain("attacker");
  expect(JSON.parse(text).exchanges[0].request).toEqual({
    ...{ method: "POST", url: "https://seller.example/haiku", headers: {} },
    querySha256: "2ab88181436a2ef488272d660d4376acb3a6da81884c9613aea5305ab52ec702",
    bodySha256: "91ee2361a53a8094873d4cfb741868295b31dae6c61f456a1e5300a3c2ee9bb4",
  });
  const statement =
    "A payment for https://seller.example/haiku?attacker=words is refused at https://seller.example/sonnet?attacker (got 402)";
  const finding = { code: "binding.other_route" as const, statement, holds: true, exchanges: [1] };
  const [kept] = keptChecks([{ check: "binding", outcome: "pass", reason: null, findings: [finding] }]);
  expect(kept?.findings[0]?.statement).toBe(
    "A payment for https://seller.example/haiku is refused at https://seller.example/sonnet (got 402)",
  );
});

test("Statements that quote a seller are sanitized and shortened", () => {
  const words = `It is named \ud800\u0000\u2028${"x".repeat(9_000)}`;
  const finding = { code: "terms.names_this_url" as const, statement: words, holds: false, exchanges: [] };
  const [kept] = keptChecks([{ check: "terms", outcome: "fail", reason: null, findings: [finding] }]);
  const statement = kept?.findings[0]?.statement ?? "";
  expect(statement.startsWith("It is named \ufffd\ufffd\ufffdxxx")).toBe(true);
  expect(statement.length).toBeLessThan(4_200);
});

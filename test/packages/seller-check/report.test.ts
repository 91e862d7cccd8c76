import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isSharedStorable } from "../../../packages/seller-check/src/exam/checks/caching.ts";
import { CHECK_WEIGHTS, levelOf } from "../../../packages/seller-check/src/exam/level.ts";
import { plain, plainJson } from "../../../packages/seller-check/src/exam/plain.ts";
import { type FindingCode, REMEDIES, remedyOf } from "../../../packages/seller-check/src/exam/remedies.ts";
import {
  CHECKS,
  type CheckName,
  judged,
  notApplicable,
  type Outcome,
} from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { reportJsonText, reportText } from "../../../packages/seller-check/src/report.ts";

/** Characters from a seller that must never reach a terminal or a reader. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const HOSTILE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/;

test.each([
  ["a haiku", "a haiku"],
  ["Übermut ❤", "Übermut ❤"],
  ["\u001b[31mred", "\\u{1b}[31mred"],
  ["\u009b2J", "\\u{9b}2J"],
  ["a\r\nb", "a\\u{d}\\u{a}b"],
  ["abc\u202ecba", "abc\\u{202e}cba"],
  ["zero\u200bwidth", "zero\\u{200b}width"],
  ["\ud800", "\\u{d800}"],
  ["::error::gone", ": :error::gone"],
  ["  ::set-output name=level::full", ": :set-output name=level::full"],
  ["x ##[set-output name=level;]full", "x # #[set-output name=level;]full"],
])("%j is shown as %j", (text, shown) => {
  expect(plain(text)).toBe(shown);
});

test("A seller's text is shown as one line of bounded length without hidden characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), (text) => {
      const shown = plain(text, 100);
      expect(shown.replace(/[\ud800-\udbff][\udc00-\udfff]/g, "")).not.toMatch(HOSTILE);
      expect(shown.length).toBeLessThan(1_200);
      expect(shown).not.toMatch(/^\s*::|##\[/);
    }),
  );
});

test("JSON keeps its value while every hidden character in it becomes an escape", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: "binary" }), (value, text) => {
      const json = JSON.stringify([value, text], null, 2);
      const shown = plainJson(json);
      expect(JSON.parse(shown)).toEqual(JSON.parse(json));
      expect(shown.replaceAll("\n", "").replace(/[\ud800-\udbff][\udc00-\udfff]/g, "")).not.toMatch(HOSTILE);
    }),
  );
});

const WORDS = `\u001b]0;gone\u0007\u202e${"long ".repeat(400)}\n::error::taken over`;
const REPORT = {
  level: null,
  results: [
    judged("terms", [{ code: "terms.names_this_url", statement: WORDS, holds: false, exchanges: [1] }]),
    notApplicable("purchase", WORDS),
  ],
  exchanges: [
    {
      number: 1,
      request: { method: "GET", url: "http://seller.example/", headers: {}, body: null },
      answer: { status: 402, headers: { "x-words": WORDS }, body: new TextEncoder().encode(WORDS) },
      failure: null,
    },
  ],
  terms: null,
  settled: new Map(),
  spent: 0n,
};

test("A report on a terminal shows a seller's text on one line, escaped and shortened", () => {
  const lines = reportText(REPORT).split("\n");
  expect(lines).toHaveLength(7);
  for (const line of lines) {
    expect(line).not.toMatch(HOSTILE);
    expect(line.length).toBeLessThan(600);
  }
  expect(lines[1]).toMatch(/^ {6}Failed: \\u\{1b\}\]0;gone/);
  expect(lines[2]).toMatch(/^ {6}Fix: Set resource\.url [^\n]+ https:\/\/github\.com\/x402-foundation\/x402\/\S+$/);
});

test("A JSON report on a terminal escapes a seller's text and keeps its value", () => {
  const text = reportJsonText(REPORT);
  expect(text.replaceAll("\n", "")).not.toMatch(HOSTILE);
  const { checks, exchanges } = JSON.parse(text);
  expect(checks[0]).toMatchObject({ weight: "safe", findings: [{ remedy: { link: expect.any(String) } }] });
  const [exchange] = exchanges;
  expect(exchange.answer.body).toBe(WORDS.slice(0, 2_048));
});

const levelWith = (check: CheckName, outcome: Outcome) =>
  levelOf(
    CHECKS.map((name) => ({ check: name, outcome: name === check ? outcome : "pass", reason: null, findings: [] })),
  );

test.each(CHECKS)("The published weight of %s decides the level after its failure", (check) => {
  const isSafe = CHECK_WEIGHTS[check] === "safe";
  expect(levelWith(check, "pass")).toBe("full");
  expect(levelWith(check, "fail")).toBe(isSafe ? null : "safe");
  expect(levelWith(check, "not_applicable")).toBe(isSafe ? null : "full");
});

test("Every finding that does not hold has a remedy with a link, and one that holds has none", () => {
  for (const code of Object.keys(REMEDIES) as FindingCode[]) {
    expect(remedyOf({ code, holds: true })).toBeNull();
    const remedy = remedyOf({ code, holds: false });
    expect(remedy, code).toEqual({ text: expect.stringMatching(/^[A-Z].{20,}\.$/), link: expect.any(String) });
    expect(new URL(remedy?.link ?? "").protocol).toBe("https:");
  }
});

test.each([
  ["the package's README", "packages/seller-check/README.md"],
  ["the page about the exam", "docs/seller-exam.md"],
])("In %s, every check has the weight that the code gives it", (_, file) => {
  const text = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `(\w+)` \| `(safe|full)` \|/gm)].map(([, check, weight]) => [check, weight]);
  expect(Object.fromEntries(rows)).toEqual(CHECK_WEIGHTS);
});

const url = "https://seller.example/haiku";
const storable = (headers: Record<string, string>, method = "GET", status = 200) =>
  isSharedStorable({ url, method }, { status, headers, body: new Uint8Array() }, ["payment-signature"]);
const control = (text: string) => ({ "cache-control": text });

test.each<[Record<string, string>, boolean]>([
  [{}, true],
  [control("no-store"), false],
  [control("NO-STORE"), false],
  [control("private"), false],
  [control("Private, max-age=60"), false],
  [control("no-cache"), false],
  [control("public"), true],
  [control("max-age=60"), true],
  [control("s-maxage=60"), true],
  // Qualified forms restrict only the fields that they name.
  [control('private="set-cookie"'), true],
  [control('no-cache="set-cookie"'), true],
  [control('no-cache="set-cookie, no-store, x"'), true],
  [control('private="set-cookie", private'), false],
  [control('private="set-cookie", no-store'), false],
  [control('private="unterminated, no-store'), true],
  [control('private="a \\" b", no-store'), false],
  // Several header lines arrive as one list.
  [control("public, max-age=60, no-store"), false],
  [control("max-age=60, private"), false],
  [control("x-private, not-no-store"), true],
  [control("no-store=1"), false],
  // A lifetime of zero with required revalidation.
  [control("s-maxage=0"), false],
  [control("s-maxage=0, max-age=60"), false],
  [control("s-maxage=0, stale-while-revalidate=60"), true],
  [control("max-age=0"), true],
  [control("max-age=0, must-revalidate"), false],
  [control("public, max-age=0, proxy-revalidate"), false],
  [control("max-age=0, must-revalidate, s-maxage=60"), true],
  [control("max-age=never, must-revalidate"), true],
  // A cache that understands the status ignores no-store next to must-understand.
  [control("no-store, must-understand"), true],
  [control("no-store, must-understand, max-age=60"), true],
  [control("no-store, must-understand, private"), false],
  // Pragma and Expires.
  [{ pragma: "no-cache" }, true],
  [{ expires: "0" }, true],
  [{ expires: "0", ...control("private") }, false],
  // A response that varies with the payment is never reused for another one.
  [{ vary: "*", ...control("public, max-age=60") }, false],
  [{ vary: "Accept, PAYMENT-SIGNATURE", ...control("public, max-age=60") }, false],
  [{ vary: "Accept, Authorization", ...control("public, max-age=60") }, true],
  // Headers that only some caches obey, instead of Cache-Control.
  [{ "cdn-cache-control": "max-age=60", ...control("no-store") }, true],
  [{ "cdn-cache-control": "no-store", ...control("no-store") }, false],
  [{ "cdn-cache-control": "no-store" }, true],
  [{ "cloudflare-cdn-cache-control": "max-age=60", ...control("private") }, true],
  [{ "surrogate-control": "max-age=60", ...control("private") }, true],
  [{ "surrogate-control": 'content="ESI/1.0"', ...control("private") }, false],
  [{ "x-accel-expires": "60", ...control("no-store") }, true],
  [{ "x-accel-expires": "0", ...control("no-store") }, false],
])("A shared cache may store a paid response to GET with %j: %s", (headers, isStorable) => {
  expect(storable(headers)).toBe(isStorable);
});

test.each<[readonly [string, number], Record<string, string>, boolean]>([
  [["GET", 201], {}, false],
  [["GET", 202], {}, false],
  [["GET", 202], control("max-age=60"), true],
  [["GET", 201], control("no-store, must-understand, max-age=60"), true],
  [["POST", 200], {}, false],
  [["POST", 200], control("public, max-age=60"), false],
  [["POST", 200], { ...control("public, max-age=60"), "content-location": "/haiku" }, true],
  [["POST", 200], { ...control("public, max-age=60"), "content-location": "/other" }, false],
  [["POST", 200], { ...control("no-store"), "content-location": url }, false],
  [["POST", 200], { "content-location": url }, false],
  [["PUT", 200], { ...control("public, max-age=60"), "content-location": url }, false],
])("A shared cache may store the response to %j with %j: %s", ([method, status], headers, isStorable) => {
  expect(storable(headers, method, status)).toBe(isStorable);
});

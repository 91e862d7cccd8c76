import fc from "fast-check";
import { expect, test } from "vitest";
import { plain, plainJson } from "../../../packages/seller-check/src/exam/plain.ts";
import { judged, notApplicable } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { reportJsonText, reportText } from "../../../packages/seller-check/src/report.ts";

/** What a terminal or a reader must never get of a seller. */
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

test("whatever a seller writes is one line without hidden characters, and of bounded length", () => {
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

test("a report on a terminal has a seller's words on their own line, tamed and cut", () => {
  const lines = reportText(REPORT).split("\n");
  expect(lines).toHaveLength(7);
  for (const line of lines) {
    expect(line).not.toMatch(HOSTILE);
    expect(line.length).toBeLessThan(600);
  }
  expect(lines[1]).toMatch(/^ {6}Failed: \\u\{1b\}\]0;gone/);
  expect(lines[2]).toMatch(/^ {6}Fix: Set resource\.url [^\n]+ https:\/\/github\.com\/x402-foundation\/x402\/\S+$/);
});

test("a report in JSON on a terminal has them as escapes, and is the same report", () => {
  const text = reportJsonText(REPORT);
  expect(text.replaceAll("\n", "")).not.toMatch(HOSTILE);
  const { checks, exchanges } = JSON.parse(text);
  expect(checks[0]).toMatchObject({ weight: "safe", findings: [{ remedy: { link: expect.any(String) } }] });
  const [exchange] = exchanges;
  expect(exchange.answer.body).toBe(WORDS.slice(0, 2_048));
});

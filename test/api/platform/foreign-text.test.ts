import fc from "fast-check";
import { expect, test } from "vitest";
import { foreignLine, foreignLines } from "../../../api/platform/page/html.ts";

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

test.each([
  ["a plain line", "a plain line"],
  ["evil\u202egnp.exe", "evil\\u{202e}gnp.exe"],
  ["zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"],
  ["a\r\nforged: header", "a\\u{d}\\u{a}forged: header"],
  ["half \ud800 character", "half \\u{d800} character"],
  ["Größe 価格 ☕", "Größe 価格 ☕"],
  [`Z${"\u0301".repeat(50)}algo`, "Z\u0301\u0301algo"],
])("%j is shown as %j", (text, shown) => expect(foreignLine(text, 100)).toBe(shown));

test("several lines stay several", () =>
  expect(foreignLines("one\r\ntwo\tthree\n\u2028four", 100)).toBe("one\ntwo\tthree\n\\u{2028}four"));

test("whatever it says, a stranger's text hides nothing and stays short", () => {
  const hostile = fc.string({ unit: "binary", maxLength: 300 });
  fc.assert(
    fc.property(hostile, fc.integer({ min: 1, max: 120 }), (text, most) => {
      const shown = foreignLine(text, most);
      expect(UNSEEN.test(shown)).toBe(false);
      expect(shown.length).toBeLessThanOrEqual(most + 1);
      expect(shown.isWellFormed()).toBe(true);
      expect(foreignLines(text, most).replace(/[\n\t]/g, "")).not.toMatch(UNSEEN);
    }),
  );
});

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CHECK_WEIGHTS, levelOf } from "../../../packages/seller-check/src/exam/level.ts";
import { remedyOf } from "../../../packages/seller-check/src/exam/remedies.ts";
import { CHECKS, type CheckName, FINDINGS, type Outcome } from "../../../packages/seller-check/src/exam/vocabulary.ts";

const CODES = CHECKS.flatMap((check) => FINDINGS[check].map((word) => `${check}.${word}` as never));

const levelWith = (check: CheckName, outcome: Outcome) =>
  levelOf(
    CHECKS.map((name) => ({ check: name, outcome: name === check ? outcome : "pass", reason: null, findings: [] })),
  );

test.each(CHECKS)("the published weight of %s decides the level that its failure leaves", (check) => {
  const isSafe = CHECK_WEIGHTS[check] === "safe";
  expect(levelWith(check, "pass")).toBe("full");
  expect(levelWith(check, "fail")).toBe(isSafe ? null : "safe");
  expect(levelWith(check, "not_applicable")).toBe(isSafe ? null : "full");
});

test("every finding that does not hold has a remedy with a link, and one that holds has none", () => {
  for (const code of CODES) {
    expect(remedyOf({ code, holds: true })).toBeNull();
    const remedy = remedyOf({ code, holds: false });
    expect(remedy, code).toEqual({ text: expect.stringMatching(/^[A-Z].{20,}\.$/), link: expect.any(String) });
    expect(new URL(remedy?.link ?? "").protocol).toBe("https:");
  }
});

test.each([
  ["the package's README", "packages/seller-check/README.md"],
  ["the page about the exam", "docs/seller-exam.md"],
])("%s names every check with the weight that the code gives it", (_, file) => {
  const text = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `(\w+)` \| `(safe|full)` \|/gm)].map(([, check, weight]) => [check, weight]);
  expect(Object.fromEntries(rows)).toEqual(CHECK_WEIGHTS);
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { earlierOf, judgeExams, verdictOf } from "../../../api/sellers/published/standing.ts";
import { payeeExams, sellerVerification } from "../../../api/sellers/published/verification.ts";
import { type EndedExam, type ExamOrder, isVoid } from "../../../api/sellers/record.ts";
import { sampleOrder, sampleResult } from "../../support/sellers/samples.ts";

const DAY_MS = 86_400_000;
const NOW = new Date("2026-11-24T12:00:00.000Z");
const origin = "https://seller.example";
const site = { origin, prefix: "/" } as const;

interface Plan {
  readonly daysAgo: number;
  readonly level?: "full" | "safe" | null;
  readonly order?: Partial<ExamOrder>;
  readonly corrected?: boolean;
  readonly reversed?: boolean;
}

function exam({ daysAgo, level = "full", order = {}, corrected = false, reversed = false }: Plan): EndedExam {
  const endedAt = new Date(NOW.getTime() - daysAgo * DAY_MS);
  const { evidence: _, ...result } = sampleResult({ endedAt, level });
  const correction = corrected ? { reason: "The examiner's clock was wrong.", at: NOW, free: null } : null;
  return { order: sampleOrder(order), result, correction, reversedAt: reversed ? NOW : null, refund: null };
}

const FAIL = { level: null } as const;
const POST = { method: "POST", body: '{"about":"rain"}' } as const;
const record = (...plans: readonly Plan[]) =>
  sellerVerification({ site, exams: plans.map(exam) }, "https://trust.test", NOW);

describe("an origin is verified if the newest exam of a request is a PASS, and none is a FAIL", () => {
  test.each<[string, readonly Plan[], boolean, readonly string[]]>([
    ["never examined", [], false, ["never_tested"]],
    ["one PASS", [{ daysAgo: 1 }], true, []],
    ["a PASS of level safe", [{ daysAgo: 1, level: "safe" }], true, []],
    ["one FAIL", [{ daysAgo: 1, ...FAIL }], false, ["current_fail", "no_pass"]],
    ["a FAIL that was mended", [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL }], true, []],
    [
      "a PASS that a newer FAIL undoes",
      [{ daysAgo: 1, ...FAIL }, { daysAgo: 2 }],
      false,
      ["current_fail", "pass_superseded"],
    ],
    [
      "a FAIL beside a PASS of another request",
      [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL, order: { url: `${origin}/sonnet` } }],
      false,
      ["current_fail"],
    ],
    [
      "a FAIL beside a PASS by another method",
      [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL, order: POST }],
      false,
      ["current_fail"],
    ],
    [
      "a FAIL beside a PASS with another body",
      [
        { daysAgo: 1, order: { ...POST, body: "{}" } },
        { daysAgo: 2, ...FAIL, order: POST },
      ],
      false,
      ["current_fail"],
    ],
    ["a FAIL that expired", [{ daysAgo: 1 }, { daysAgo: 31, ...FAIL, order: POST }], true, []],
    ["a PASS of 29 days", [{ daysAgo: 29.99 }], true, []],
    ["a PASS of 30 days", [{ daysAgo: 30 }], false, ["pass_expired"]],
    ["a FAIL that was withdrawn", [{ daysAgo: 1, ...FAIL, corrected: true }, { daysAgo: 2 }], true, []],
    ["a PASS that was withdrawn", [{ daysAgo: 1, corrected: true }], false, ["pass_corrected"]],
    ["a FAIL that was reversed", [{ daysAgo: 1, ...FAIL, reversed: true }, { daysAgo: 2 }], true, []],
    ["a PASS that was reversed", [{ daysAgo: 1, reversed: true }], false, ["pass_reversed"]],
    [
      "a PASS that was withdrawn, over an older FAIL",
      [
        { daysAgo: 1, corrected: true },
        { daysAgo: 2, ...FAIL },
      ],
      false,
      ["current_fail", "pass_corrected"],
    ],
  ])("%s", (...[, plans, verified, codes]) => {
    const { reasons, ...rest } = record(...plans);
    expect(reasons.map(({ code }) => code)).toEqual(codes);
    expect(rest).toMatchObject({ verified, tested: plans.length > 0 });
  });

  test("and each exam says what has become of it, in words and in its link", () => {
    const { certs } = record(
      { daysAgo: 1 },
      { daysAgo: 2, ...FAIL },
      { daysAgo: 3, corrected: true },
      { daysAgo: 40, order: { url: `${origin}/old` } },
      { daysAgo: 3, reversed: true },
    );
    expect(
      certs.map(({ fresh, superseded, corrected, reversed, expired, age_days }) => [
        fresh,
        superseded,
        corrected,
        reversed,
        expired,
        age_days,
      ]),
    ).toEqual([
      [true, false, false, false, false, 1],
      [false, true, false, false, false, 2],
      [false, false, true, false, false, 3],
      [false, false, false, false, true, 40],
      [false, false, false, true, false, 3],
    ]);
    expect(certs[0]?.cert_url).toBe(`https://trust.test/cert/${certs[0]?.id}`);
  });

  test("whatever is bought, in any order: verified means that no request's newest exam is a fresh FAIL", () => {
    const plan = fc.record({
      daysAgo: fc.integer({ min: 0, max: 40 }),
      level: fc.constantFrom("full" as const, "safe" as const, null),
      order: fc.constantFrom({}, POST, { url: `${origin}/sonnet` }),
      corrected: fc.boolean(),
      reversed: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(plan, { maxLength: 12 }), (plans) => {
        const exams = plans.toSorted((a, b) => a.daysAgo - b.daysAgo).map(exam);
        const all = judgeExams(exams, NOW);
        const counting = all.filter(({ state }) => state === "counts").map((one) => one.exam);
        const { verified } = sellerVerification({ site, exams }, "https://trust.test", NOW);
        expect(verified).toBe(counting.length > 0 && counting.every((one) => verdictOf(one) === "pass"));
        for (const one of counting) {
          const newer = exams.slice(0, exams.indexOf(one));
          expect(newer.some((other) => !isVoid(other) && earlierOf(other, [one]).length > 0)).toBe(false);
          expect(NOW.getTime() - one.result.endedAt.getTime()).toBeLessThan(30 * DAY_MS);
        }
      }),
    );
  });
});

test("a PASS names the FAILs of its request that came before it", () => {
  const exams = [{ daysAgo: 1 }, { daysAgo: 2, ...FAIL }, { daysAgo: 3, ...FAIL, order: POST }].map(exam);
  expect(earlierOf(exams[0] as EndedExam, exams)).toEqual([exams[1]]);
});

describe("a payee", () => {
  const told = (...plans: readonly Plan[]) =>
    payeeExams(`0x${"5e".repeat(20)}`, plans.map(exam), { baseUrl: "https://trust.test", now: NOW }).exams.map(
      ({ result, control }) => [result, control],
    );

  test("is told the PASS of an exam that it bought, and no FAIL, since its payment may have been forwarded", () => {
    expect(told({ daysAgo: 1 })).toEqual([["pass", "file"]]);
    expect(told({ daysAgo: 1, ...FAIL })).toEqual([]);
  });

  test("is told nothing that expired, was superseded, withdrawn or reversed", () => {
    expect(told({ daysAgo: 30 })).toEqual([]);
    expect(told({ daysAgo: 1, corrected: true })).toEqual([]);
    expect(told({ daysAgo: 1, reversed: true })).toEqual([]);
    expect(told({ daysAgo: 1, ...FAIL }, { daysAgo: 2 })).toEqual([]);
  });
});

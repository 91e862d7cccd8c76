import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scoreDocument } from "../../../../packages/verifier/src/score/document.ts";
import type { SellerExam } from "../../../../packages/verifier/src/score/facts.ts";
import { parseScoreFacts } from "../../../../packages/verifier/src/score/parse-facts.ts";
import { score } from "../../../../packages/verifier/src/score/score.ts";
import type { Json } from "../../../../packages/verifier/src/strict-json.ts";
import { anyFacts } from "./arbitrary.ts";
import { ALL_PASSES, facts } from "./facts.ts";

const PASS: SellerExam = {
  id: "a1".repeat(16),
  url: `https://trust.example/cert/${"a1".repeat(16)}`,
  origin: "https://seller.example",
  result: "pass",
  level: "full",
  control: "file",
  issued_at: "2026-11-01T09:30:00.000Z",
  valid_until: "2026-12-01T09:30:00.000Z",
};
const failId = "b2".repeat(16);
const FAIL: SellerExam = {
  ...PASS,
  ...{ id: failId, url: `https://trust.example/cert/${failId}`, result: "fail", level: null },
};
const KNOWN = facts({}, ALL_PASSES);
const asJson = (given: unknown): Json => JSON.parse(JSON.stringify(given));

describe("exams of sellers", () => {
  test("change nothing of a score but the facts beside escrow outcomes, and their pages", () =>
    fc.assert(
      fc.property(anyFacts, fc.subarray([PASS, FAIL]), (given, seller_exams) => {
        const { components: known, evidence: pages, ...without } = score(given);
        const { components, evidence, ...assessed } = score({ ...given, seller_exams });
        expect(assessed).toEqual(without);
        const { escrow_outcomes, ...others } = components;
        const { escrow_outcomes: outcomes, ...othersWithout } = known;
        expect(others).toEqual(othersWithout);
        const told = seller_exams.map(({ id: _, ...exam }) => expect.objectContaining({ counts: false, ...exam }));
        expect(escrow_outcomes).toEqual({ ...outcomes, facts: [...outcomes.facts, ...told] });
        const named = (one: (typeof evidence)[number]) =>
          !seller_exams.some(({ url }) => "url" in one && one.url === url);
        expect(evidence.filter(named)).toEqual(pages);
        expect(evidence).toHaveLength(pages.length + seller_exams.length);
      }),
      { numRuns: 100 },
    ));

  test("are the same in any order", async () => {
    const [one, other] = [
      [PASS, FAIL],
      [FAIL, PASS],
    ] as const;
    const documents = [one, other].map((seller_exams) => scoreDocument({ ...KNOWN, seller_exams }));
    const [first, second] = (await Promise.all(documents)).map((document) => JSON.stringify(document));
    expect(first).toBe(second);
  });

  test.each([
    ["2026-11-25T09:30:00.000Z", false],
    ["2026-11-25T09:30:00.001Z", true],
  ])("that are valid until %s are fresh at 09:30: %s", (valid_until, fresh) => {
    const as_of = "2026-11-25T09:30:00.000Z";
    const { components } = score({ ...KNOWN, as_of, seller_exams: [{ ...PASS, valid_until }] });
    expect(components.escrow_outcomes.facts).toMatchObject([{ kind: "seller_exam", fresh }]);
  });

  test("are read back as they were written", () =>
    expect(parseScoreFacts(asJson({ ...KNOWN, seller_exams: [PASS, FAIL] }))).toEqual({
      ...KNOWN,
      seller_exams: [PASS, FAIL],
    }));

  test.each<[string, unknown, string]>([
    ["no list", {}, "inputs.seller_exams is "],
    ["two of one result", [PASS, PASS], "inputs.seller_exams[1] repeats"],
    ["another member", [{ ...PASS, points: 3 }], 'inputs.seller_exams[0] has an unknown member "points"'],
    [
      "one that no file gave consent to",
      [{ ...FAIL, control: "signature" }],
      'inputs.seller_exams[0].control is "signature"; expected',
    ],
    ["a FAIL with a level", [{ ...FAIL, level: "safe" }], "inputs.seller_exams[0].level: expected"],
    ["a PASS without one", [{ ...PASS, level: null }], "inputs.seller_exams[0].level: expected"],
    [
      "one that never counted",
      [{ ...PASS, valid_until: PASS.issued_at }],
      "inputs.seller_exams[0].valid_until: expected",
    ],
    ["an origin with a path", [{ ...PASS, origin: "https://seller.example/a" }], "inputs.seller_exams[0].origin is "],
    [
      "an origin with a name in it",
      [{ ...PASS, origin: "https://me@seller.example" }],
      "inputs.seller_exams[0].origin is ",
    ],
    [
      "an origin that is not normalized",
      [{ ...PASS, origin: "https://Seller.example" }],
      "inputs.seller_exams[0].origin is ",
    ],
    ["a page that is a script", [{ ...PASS, url: "javascript:alert(1)" }], "inputs.seller_exams[0].url is "],
  ])("with %s are refused", (_, seller_exams, reason) =>
    expect(() => parseScoreFacts(asJson({ ...KNOWN, seller_exams }))).toThrow(reason),
  );
});

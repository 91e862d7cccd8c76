import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import type { SellerExam } from "../../../../packages/verifier/src/score/facts.ts";
import { parseScoreFacts } from "../../../../packages/verifier/src/score/parse-facts.ts";
import { score, scoreDocument } from "../../../../packages/verifier/src/score/score.ts";
import { ALL_PASSES, anyFacts, buyerDays, certificate, facts, outcomes, transaction } from "./facts.ts";

// The numbers repeat the rule's own, so that a changed band must change a row.

const asJson = (given: unknown) => JSON.parse(JSON.stringify(given));
const judged = (...given: Parameters<typeof outcomes>) =>
  score(facts({ escrow: outcomes(...given) })).components.escrow_outcomes;

test.each([
  [0, 0],
  [1, 1],
  [2, 1],
  [3, 2],
  [4, 2],
  [5, 3],
])("Releases to %i buyers give %i points, on any number of days", (buyers, points) => {
  expect(judged([buyers, buyers], [0, 0])).toMatchObject({ points, max: 3 });
  expect(judged([buyers, buyers * 90], [0, 0]).points).toBe(points);
});

describe("refunds and their share of the buyer-days", () => {
  test.each([
    [96, 5, 0, 4],
    [95, 5, -1, 5],
    [46, 5, -1, 9],
    [45, 5, -2, 10],
    [21, 5, -2, 19],
    [20, 5, -3, 20],
    [10, 5, -3, 33],
    [9, 5, -4, 35],
    [6, 5, -4, 45],
    [5, 5, -6, 50],
    [0, 5, -6, 100],
    [1_901, 100, 0, 4],
  ])(
    "With %i buyer-days released and %i refunded, the points change by %i at %i percent",
    (...[released, refunded, taken, percent]) => {
      const { points, facts } = judged([Math.min(released, 5), released], [5, refunded]);
      expect(points).toBe((released === 0 ? 0 : 3) + taken);
      expect(facts.at(-1)).toMatchObject({ kind: "refunds", percent, counts: taken < 0, days: refunded });
    },
  );

  test("Fewer than 5 buyers lose no points, on any number of days", () => {
    expect(judged([0, 0], [4, 360]).points).toBe(0);
    expect(judged([0, 0], [4, 360]).facts).toEqual([
      {
        kind: "refunds",
        counts: false,
        buyers: 4,
        days: 360,
        percent: 100,
        transaction: transaction(3),
        tx: transaction(3),
      },
    ]);
    expect(judged([0, 0], [5, 5]).points).toBe(-6);
  });
});

test("Another buyer-day of releases never lowers the score, and another of refunds never raises it", () => {
  fc.assert(
    fc.property(anyFacts, buyerDays(40), buyerDays(20), (given, released, refunded) => {
      const at = (...escrow: Parameters<typeof outcomes>) =>
        score({ ...given, chain: { ...given.chain, escrow: outcomes(...escrow) } }).score;
      const another = ([buyers, days]: readonly [number, number], who: 0 | 1) => [buyers + who, days + 1] as const;
      const now = at(released, refunded);
      for (const who of [0, 1] as const) {
        if (released[0] + who > 0) expect(at(another(released, who), refunded)).toBeGreaterThanOrEqual(now);
        if (refunded[0] + who > 0) expect(at(released, another(refunded, who))).toBeLessThanOrEqual(now);
      }
    }),
    { numRuns: 300 },
  );
});

test("A release and a refund are evidence, and refunds never take the score below zero", () => {
  const given = facts({ escrow: outcomes([1, 1], [5, 9]) }, [certificate("basic")]);
  expect(score(given)).toMatchObject({ score: 21 });
  expect(score(given).evidence.slice(1)).toEqual([
    { network: "eip155:8453", transaction: transaction(2), tx: transaction(2) },
    { network: "eip155:8453", transaction: transaction(3), tx: transaction(3) },
  ]);
  expect(score(facts({ escrow: outcomes([0, 0], [5, 9]) }, [certificate("basic", { age: 31 })])).score).toBe(0);
});

describe("the facts", () => {
  const whole = outcomes([2, 3], [1, 1]);
  const refusal = (changed: object): string => {
    try {
      parseScoreFacts(asJson(facts({ escrow: { ...whole, ...changed } })));
    } catch (error) {
      expect(error).toBeInstanceOf(InputError);
      return (error as InputError).message;
    }
    return "accepted";
  };

  test.each([
    [{ release_days: 1 }, /^inputs\.chain\.escrow\.release_days: expected at least one for each buyer$/],
    [{ buyers: 0 }, /release_days: expected at least one for each buyer$/],
    [{ refund_days: 0 }, /refund_days: expected at least one for each buyer$/],
    [{ last_release_tx: null }, /last_release_tx: expected null if and only if release_days is 0$/],
    [{ last_refund_tx: null }, /last_refund_tx: expected null if and only if refund_days is 0$/],
    [{ refunded_buyers: -1 }, /refunded_buyers is -1; expected a whole number of at least 0$/],
    [{ buyers: undefined }, /buyers is missing; expected/],
    [{ releases: 1 }, /inputs\.chain\.escrow has an unknown member "releases"$/],
  ])("Contradicting facts are refused: %j", (changed, message) => expect(refusal(changed)).toMatch(message));
});

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

describe("exams of sellers", () => {
  test("They change nothing in a score except the facts of escrow outcomes and their pages", () =>
    fc.assert(
      fc.property(anyFacts, fc.subarray([PASS, FAIL]), (given, seller_exams) => {
        const { components: known, evidence: pages, ...without } = score(given);
        const { components, evidence, ...assessed } = score({ ...given, seller_exams });
        expect(assessed).toEqual(without);
        const { escrow_outcomes, ...others } = components;
        const { escrow_outcomes: outcomes, ...othersWithout } = known;
        expect(others).toEqual(othersWithout);
        const expected = seller_exams.map(({ id: _, ...exam }) => expect.objectContaining({ counts: false, ...exam }));
        expect(escrow_outcomes).toEqual({ ...outcomes, facts: [...outcomes.facts, ...expected] });
        const named = (one: (typeof evidence)[number]) =>
          !seller_exams.some(({ url }) => "url" in one && one.url === url);
        expect(evidence.filter(named)).toEqual(pages);
        expect(evidence).toHaveLength(pages.length + seller_exams.length);
      }),
      { numRuns: 100 },
    ));

  test("They give the same document in any order", async () => {
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
  ])("An exam that is valid until %s is fresh at 09:30: %s", (valid_until, fresh) => {
    const as_of = "2026-11-25T09:30:00.000Z";
    const { components } = score({ ...KNOWN, as_of, seller_exams: [{ ...PASS, valid_until }] });
    expect(components.escrow_outcomes.facts).toMatchObject([{ kind: "seller_exam", fresh }]);
  });

  test("They are parsed as they were written", () =>
    expect(parseScoreFacts(asJson({ ...KNOWN, seller_exams: [PASS, FAIL] }))).toEqual({
      ...KNOWN,
      seller_exams: [PASS, FAIL],
    }));

  test.each<[string, unknown, string]>([
    ["no list", {}, "inputs.seller_exams is "],
    ["two with one result", [PASS, PASS], "inputs.seller_exams[1] repeats"],
    ["another member", [{ ...PASS, points: 3 }], 'inputs.seller_exams[0] has an unknown member "points"'],
    [
      "an exam without the consent file",
      [{ ...FAIL, control: "signature" }],
      'inputs.seller_exams[0].control is "signature"; expected',
    ],
    ["a FAIL with a level", [{ ...FAIL, level: "safe" }], "inputs.seller_exams[0].level: expected"],
    ["a PASS without a level", [{ ...PASS, level: null }], "inputs.seller_exams[0].level: expected"],
    [
      "an exam that never counted",
      [{ ...PASS, valid_until: PASS.issued_at }],
      "inputs.seller_exams[0].valid_until: expected",
    ],
    ["an origin with a path", [{ ...PASS, origin: "https://seller.example/a" }], "inputs.seller_exams[0].origin is "],
    [
      "an origin with a user name",
      [{ ...PASS, origin: "https://me@seller.example" }],
      "inputs.seller_exams[0].origin is ",
    ],
    [
      "an origin that is not normalized",
      [{ ...PASS, origin: "https://Seller.example" }],
      "inputs.seller_exams[0].origin is ",
    ],
    ["a page that is a script", [{ ...PASS, url: "javascript:alert(1)" }], "inputs.seller_exams[0].url is "],
  ])("Exams with %s are refused", (_, seller_exams, reason) =>
    expect(() => parseScoreFacts(asJson({ ...KNOWN, seller_exams }))).toThrow(reason),
  );
});

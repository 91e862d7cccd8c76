import { describe, expect, test } from "vitest";
import type * as bands from "../../../../packages/verifier/src/score/bands.ts";
import { capsOf, score } from "../../../../packages/verifier/src/score/score.ts";
import { ALL_PASSES, before, certificate, daysAgo, FUNDER, facts, outcomes, payee, payees, payments } from "./facts.ts";

/** One payment per week, the last one this number of days ago. */
const weekly = (weeks: number, { last = 1, value = 1_000 } = {}) =>
  payments(...Array.from({ length: weeks }, (_, week) => [daysAgo(last + 7 * week), 1, value] as const));

/** Everything that gives points, within the limits of three parameters. */
const best = ({ counterparties = 20, weeks = 6, certificates = ALL_PASSES }) => {
  const made = Array.from({ length: weeks }, (_, week) => [daysAgo(7 * week), 50, 25_000_000] as const);
  return facts({ payments: payments(...made), payees: payees(counterparties), escrow: outcomes([5, 5]) }, certificates);
};

describe("the tiers", () => {
  const passes = [certificate("basic"), certificate("scam")];
  test.each([
    [25, "F", facts({ payments: payments([daysAgo(10), 3, 3_000]) })],
    [26, "D", facts({ payments: payments([daysAgo(7), 3, 3_000]) })],
    [54, "D", facts({ payments: weekly(5) }, passes)],
    [55, "C", facts({ payments: weekly(6) }, passes)],
    [77, "C", facts({ payments: weekly(2, { last: 40 }), payees: payees(3) }, ALL_PASSES)],
    [78, "B", facts({ payments: weekly(2, { last: 20 }), payees: payees(3) }, ALL_PASSES)],
    [89, "B", facts({ payments: weekly(4), payees: payees(20) }, ALL_PASSES)],
    [90, "A", facts({ payments: weekly(4, { value: 100_000 }), payees: payees(20) }, ALL_PASSES)],
    [100, "A", best({})],
  ])("The score %i is tier %s, without a cap", (expected, tier, given) =>
    expect(score(given)).toMatchObject({ score: expected, tier, caps: [] }),
  );
});

describe("a wallet without any certificate", () => {
  test.each([
    [0, payments()],
    [2, payments([daysAgo(1), 2, 2_000_000])],
  ])("A wallet without a certificate and with %i payments is unrated, with score 0", (_, made) => {
    const given = facts({ payments: made, payees: payees(3), escrow: outcomes([5, 5]) });
    expect(score(given)).toMatchObject({
      score: 0,
      tier: "unrated",
      caps: [{ cap: "unrated", limit: 0, because: ["no_certificate", "too_few_payments"] }],
    });
  });

  test("A wallet without a certificate and with 3 payments is rated", () =>
    expect(score(facts({ payments: payments([daysAgo(1), 3, 3_000]) }))).toMatchObject({ tier: "D", caps: [] }));

  test("A wallet whose only certificate was reversed is unrated", () =>
    expect(score(facts({}, [certificate("suite", { reversed: true })]))).toMatchObject({
      tier: "unrated",
      flags: [],
      evidence: [],
    }));

  test("A wallet whose only certificate has expired is rated", () =>
    expect(score(facts({}, [certificate("scam", { age: 400 })]))).toMatchObject({
      score: 0,
      tier: "F",
      flags: ["expired_scam_resistance"],
    }));
});

describe("a behavioral FAIL", () => {
  const failed = (product: "scam" | "recipient" | "retry", over: { age?: number; reversed?: boolean } = {}) =>
    score(best({ certificates: [...ALL_PASSES, certificate(product, { result: "fail", ...over })] }));

  test.each([
    ["scam", "fresh_fail_scam_resistance"],
    ["recipient", "fresh_fail_recipient_awareness"],
    ["retry", "fresh_fail_retry_safety"],
  ] as const)("A fresh one caps the score at 25, whatever else counts: %s", (product, flag) =>
    expect(failed(product)).toMatchObject({
      score: 25,
      tier: "F",
      flags: [flag],
      caps: [{ cap: "fresh_fail", limit: 25, because: [flag] }],
    }),
  );

  test("Two of them give two flags and one cap", () => {
    const fails = [certificate("recipient", { result: "fail" }), certificate("scam", { result: "fail" })];
    const flags = ["fresh_fail_scam_resistance", "fresh_fail_recipient_awareness"];
    expect(score(facts({}, fails))).toMatchObject({ score: 0, tier: "F", flags, caps: [{ because: flags }] });
  });

  test("It caps until its 30 days are over", () => {
    expect(failed("scam", { age: 29 })).toMatchObject({ score: 25, tier: "F" });
    expect(failed("scam", { age: 30 })).toMatchObject({ score: 100, tier: "A", flags: [], caps: [] });
  });

  test("An expired one without a newer result does not cap, and its capability counts as expired", () => {
    const certificates = [
      certificate("suite"),
      certificate("recipient"),
      certificate("scam", { result: "fail", age: 30 }),
    ];
    expect(score(best({ certificates }))).toMatchObject({
      score: 80,
      tier: "B",
      flags: ["expired_scam_resistance"],
      caps: [],
    });
  });

  test("A reversed one does not cap", () =>
    expect(failed("scam", { reversed: true })).toMatchObject({ score: 100, tier: "A", flags: [], caps: [] }));

  test("A FAIL of retry safety, which has no points, is shown with the payment capability", () => {
    const { components, evidence } = failed("retry");
    const { facts } = components.payment_capability;
    expect(facts).toMatchObject([
      { product: "suite", counts: true },
      { product: "retry", result: "fail", counts: false },
    ]);
    expect(evidence).toContainEqual({ url: expect.stringContaining("retry-fail") });
  });

  test("A FAIL of the suite does not count as one", () =>
    expect(score(best({ certificates: [...ALL_PASSES, certificate("suite", { result: "fail" })] }))).toMatchObject({
      score: 100,
      tier: "A",
    }));
});

test("Every expired capability has its flag", () => {
  const old = (["basic", "suite", "scam", "recipient", "retry"] as const).map((product) =>
    certificate(product, { age: 31 }),
  );
  expect(score(facts({}, old)).flags).toEqual([
    "expired_can_pay",
    "expired_full_suite",
    "expired_scam_resistance",
    "expired_recipient_awareness",
    "expired_retry_safety",
  ]);
  expect(score(facts({}, [...old, certificate("scam")])).flags).not.toContain("expired_scam_resistance");
});

describe("the requirements of tiers A and B", () => {
  const given = facts({}, ALL_PASSES);
  const enough = { behavioural_passes: 2, independent_counterparties: 5, active_weeks: 4 };
  test.each([
    [90, enough, []],
    [90, { ...enough, behavioural_passes: 1 }, [["tier_a_requirements", 89, ["behavioural_passes"]]]],
    [90, { ...enough, independent_counterparties: 4 }, [["tier_a_requirements", 89, ["independent_counterparties"]]]],
    [90, { ...enough, active_weeks: 3 }, [["tier_a_requirements", 89, ["active_weeks"]]]],
    [89, { behavioural_passes: 0, independent_counterparties: 3, active_weeks: 2 }, []],
    [78, { ...enough, independent_counterparties: 2 }, [["tier_b_requirements", 77, ["independent_counterparties"]]]],
    [78, { ...enough, active_weeks: 1 }, [["tier_b_requirements", 77, ["active_weeks"]]]],
    [77, { behavioural_passes: 0, independent_counterparties: 0, active_weeks: 0 }, []],
  ] as const)("With %i points and %j, the caps are %j", (points, achieved, expected) =>
    expect(capsOf(given, points, achieved).map(({ cap, limit, because }) => [cap, limit, because])).toEqual(expected),
  );
});

// The numbers repeat the rule's own, so that a changed band must change a row.

const DAY_MS = 86_400_000;
const points = (given: ReturnType<typeof facts>, component: bands.ComponentName) =>
  score(given).components[component].points;

describe("payment capability", () => {
  const three = payments([daysAgo(1), 3, 3_000]);

  test.each([
    ["no facts", facts(), 0],
    ["2 qualifying payments", facts({ payments: payments([daysAgo(1), 2, 2_000]) }), 0],
    ["3 qualifying payments", facts({ payments: three }), 22],
    ["a fresh basic PASS", facts({}, [certificate("basic")]), 26],
    ["a fresh scam PASS", facts({}, [certificate("scam")]), 26],
    ["a fresh suite PASS", facts({}, [certificate("suite")]), 30],
    [
      "a fresh suite PASS and a newer basic one",
      facts({}, [certificate("suite", { age: 9 }), certificate("basic")]),
      30,
    ],
    ["a suite FAIL", facts({}, [certificate("suite", { result: "fail" })]), 0],
    ["an expired suite PASS", facts({}, [certificate("suite", { age: 30 })]), 0],
    ["an expired suite PASS and payments", facts({ payments: three }, [certificate("suite", { age: 30 })]), 22],
    [
      "an expired suite PASS and a fresh basic one",
      facts({}, [certificate("suite", { age: 30 }), certificate("basic")]),
      26,
    ],
    ["a reversed suite PASS", facts({}, [certificate("suite", { reversed: true })]), 0],
  ])("With %s it has the expected points", (_, given, expected) =>
    expect(points(given, "payment_capability")).toBe(expected),
  );
});

test("Payment capability names the certificate that gives its points and the expired ones", () => {
  const [suite, basic, old] = [
    certificate("suite", { age: 9 }),
    certificate("basic"),
    certificate("basic", { age: 30 }),
  ];
  const named = (...given: Parameters<typeof facts>) =>
    score(facts(...given)).components.payment_capability.facts.map((fact) => [
      fact.counts,
      "url" in fact ? fact.url : fact.kind,
    ]);
  expect(named({}, [suite, basic])).toEqual([[true, suite.url]]);
  expect(named({}, [suite, old])).toEqual([
    [true, suite.url],
    [false, old.url],
  ]);
  expect(named({ payments: payments([daysAgo(1), 3, 3_000]) }, [old])).toEqual([
    [true, "payments"],
    [false, old.url],
  ]);
});

describe.each([
  ["scam_resistance", "scam"],
  ["recipient_awareness", "recipient"],
] as const)("%s", (component, product) => {
  test.each([
    ["no test", [], 0],
    ["a fresh PASS", [certificate(product)], 20],
    ["a fresh FAIL", [certificate(product, { result: "fail" })], 0],
    ["a fresh PASS after a fresh FAIL", [certificate(product), certificate(product, { result: "fail", age: 9 })], 0],
    [
      "a fresh PASS after an expired FAIL",
      [certificate(product), certificate(product, { result: "fail", age: 30 })],
      20,
    ],
    [
      "a fresh PASS after a reversed FAIL",
      [certificate(product), certificate(product, { result: "fail", reversed: true })],
      20,
    ],
    ["an expired PASS", [certificate(product, { age: 30 })], 0],
    ["a reversed PASS", [certificate(product, { reversed: true })], 0],
    [
      "an older PASS below a reversed one",
      [certificate(product, { age: 9 }), certificate(product, { reversed: true })],
      20,
    ],
  ])("With %s it has the expected points", (_, certificates, expected) =>
    expect(points(facts({}, certificates), component)).toBe(expected),
  );
});

test("A certificate is fresh up to valid_until, exclusive", () => {
  const pass = certificate("suite");
  const at = (asOf: string) => score(facts({}, [pass], asOf));
  const last = new Date(Date.parse(pass.valid_until) - 1).toISOString();
  expect(at(last)).toMatchObject({ flags: [], components: { payment_capability: { points: 30 } } });
  expect(at(pass.valid_until)).toMatchObject({
    score: 0,
    tier: "F",
    flags: ["expired_full_suite"],
    components: { payment_capability: { points: 0, facts: [{ counts: false, fresh: false, url: pass.url }] } },
    evidence: [{ url: pass.url }],
  });
});

test.each([
  [0, 0],
  [1, 1],
  [2, 2],
  [3, 4],
  [4, 4],
  [5, 6],
  [7, 6],
  [8, 8],
  [11, 8],
  [12, 10],
  [19, 10],
  [20, 12],
])("%i independent counterparties give %i points", (count, expected) =>
  expect(points(facts({ payees: payees(count) }), "independent_counterparties")).toBe(expected),
);

describe("payments", () => {
  test.each([
    [2, 0],
    [3, 1],
    [9, 1],
    [10, 2],
    [24, 2],
    [25, 4],
    [49, 4],
    [50, 6],
  ])("With enough value, %i payments give %i points", (count, expected) => {
    const made = payments([daysAgo(1), count, 25_000_000]);
    expect(points(facts({ payments: made, payees: payees(64) }), "payments")).toBe(expected);
  });

  test.each([
    [249_999, 0],
    [250_000, 1],
    [999_999, 1],
    [1_000_000, 2],
    [4_999_999, 2],
    [5_000_000, 4],
    [24_999_999, 4],
    [25_000_000, 6],
  ])("A total of %i atomic USDC in 50 payments gives %i points", (value, expected) => {
    const made = payments([daysAgo(1), 25, 100_000], [daysAgo(80), 25, value - 100_000]);
    expect(points(facts({ payments: made, payees: payees(10) }), "payments")).toBe(expected);
  });

  test.each([
    [0, 0, 0],
    [1, 5, 1],
    [10, 50, 6],
    [12, 60, 6],
  ])(
    "With %i independent counterparties, %i of 60 payments are considered and give %i points",
    (count, considered, expected) => {
      const given = facts({ payments: payments([daysAgo(1), 60, 25_000_000]), payees: payees(count) });
      expect(score(given).components.payments).toMatchObject({
        points: expected,
        facts: [{ kind: "payments", count: 60, considered, value: "25000000" }],
      });
    },
  );
});

describe("active weeks", () => {
  test.each([0, 1, 6, 7])("%i weeks with a payment give one point each, six at most", (weeks) => {
    const made = payments(...Array.from({ length: weeks }, (_, week) => [daysAgo(7 * week), 1, 1_000] as const));
    expect(points(facts({ payments: made }), "active_weeks")).toBe(Math.min(weeks, 6));
  });

  test.each([
    ["2026-11-16", "2026-11-22", ["2026-W47"]],
    ["2026-11-15", "2026-11-16", ["2026-W46", "2026-W47"]],
    ["2026-12-28", "2027-01-03", ["2026-W53"]],
    ["2027-01-03", "2027-01-04", ["2026-W53", "2027-W01"]],
    ["2024-12-29", "2024-12-30", ["2024-W52", "2025-W01"]],
    ["2022-01-01", "2022-01-03", ["2021-W52", "2022-W01"]],
  ])("%s and %s are in %j", (one, other, weeks) => {
    const made = payments([`${one}T00:00:00.000Z`, 1, 1_000], [`${other}T23:59:59.000Z`, 1, 1_000]);
    const given = facts({ payments: made }, [], `${other}T23:59:59.000Z`);
    expect(score(given).components.active_weeks).toMatchObject({ points: weeks.length, facts: [{ weeks }] });
  });
});

test.each([
  [0, 3],
  [8 * DAY_MS - 1, 3],
  [8 * DAY_MS, 2],
  [31 * DAY_MS - 1, 2],
  [31 * DAY_MS, 1],
  [61 * DAY_MS - 1, 1],
  [61 * DAY_MS, 0],
])("A last payment %i ms ago gives %i points of recency, by whole days", (ms, expected) => {
  const { recency } = score(facts({ payments: payments([before(ms), 1, 1_000]) })).components;
  expect(recency).toMatchObject({
    points: expected,
    facts: [{ counts: expected > 0, days: Math.floor(ms / DAY_MS), at: before(ms) }],
  });
});

describe("an examined payee", () => {
  const from = "2026-08-28T00:00:00.000Z";
  const justBefore = "2026-08-27T23:59:59.000Z";
  const old = { first_at: "2026-08-01T00:00:00.000Z" };
  test.each([
    ["49999 atomic USDC", payee(1, { value: "49999" }), "below_floor"],
    ["50000 atomic USDC", payee(1, { value: "50000" }), null],
    ["last paid in the window's first second", payee(1, { ...old, last_at: from }), null],
    ["last paid the second before", payee(1, { ...old, last_at: justBefore }), "outside_window"],
    ["half sent back", payee(1, { value: "100000", returned: "50000" }), "reciprocal_flow"],
    ["one unit less than half sent back", payee(1, { value: "100000", returned: "49999" }), null],
    ["half of an odd sum, rounded down, sent back", payee(1, { value: "100001", returned: "50000" }), null],
    ["half of an odd sum, rounded up, sent back", payee(1, { value: "100001", returned: "50001" }), "reciprocal_flow"],
    ["everything and more sent back", payee(1, { returned: "99999999" }), "reciprocal_flow"],
    ["the wallet's largest funder now", payee(1, { payee: FUNDER, funder_at_floor: null }), "own_funder"],
    ["the wallet's largest funder at the floor", payee(1, { funder_at_floor: payee(1).payee }), "own_funder"],
    ["2 other funders", payee(1, { other_funders: 2 }), "too_few_funders"],
    ["3 other funders", payee(1, { other_funders: 3 }), null],
    [
      "2 other funders and a payer without a funder",
      payee(1, { other_funders: 2, unfunded_payers: 1 }),
      "funder_unknown",
    ],
    [
      "1 other funder and a payer without a funder",
      payee(1, { other_funders: 1, unfunded_payers: 1 }),
      "too_few_funders",
    ],
    ["only payers without funders", payee(1, { other_funders: 0, unfunded_payers: 64 }), "funder_unknown"],
    ["no funder of the wallet known at the floor", payee(1, { funder_at_floor: null }), null],
  ])("A payee with %s gets the reason %s", (_, one, reason) => {
    const { independent_counterparties } = score(facts({ payees: [one] })).components;
    expect(independent_counterparties).toEqual({
      points: reason === null ? 1 : 0,
      max: 12,
      facts: [
        {
          kind: "counterparty",
          counts: reason === null,
          payee: one.payee,
          reason,
          transaction: one.last_tx,
          tx: one.last_tx,
        },
      ],
    });
  });

  test("A payee counts if the wallet itself was never funded", () =>
    expect(
      score(facts({ largest_funder: null, payees: [payee(1)] })).components.independent_counterparties.points,
    ).toBe(1));
});

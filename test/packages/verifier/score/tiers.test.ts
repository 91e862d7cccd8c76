import { describe, expect, test } from "vitest";
import { REQUIREMENTS } from "../../../../packages/verifier/src/score/bands.ts";
import { capsOf } from "../../../../packages/verifier/src/score/caps.ts";
import { score } from "../../../../packages/verifier/src/score/score.ts";
import { ALL_PASSES, certificate, daysAgo, facts, outcomes, payees, payments } from "./facts.ts";

/** The given number of payments, one a week, the last one the given number of days ago. */
const weekly = (weeks: number, { last = 1, value = 1_000 } = {}) =>
  payments(...Array.from({ length: weeks }, (_, week) => [daysAgo(last + 7 * week), 1, value] as const));

/** Everything that gives points, so far as three parameters do not limit it. */
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
  ])("%i is %s, and no cap has made it so", (expected, tier, given) =>
    expect(score(given)).toMatchObject({ score: expected, tier, caps: [] }),
  );
});

describe("a wallet without any certificate", () => {
  test.each([
    [0, payments()],
    [2, payments([daysAgo(1), 2, 2_000_000])],
  ])("and with %i payments is unrated, with score 0", (_, made) => {
    const given = facts({ payments: made, payees: payees(3), escrow: outcomes([5, 5]) });
    expect(score(given)).toMatchObject({
      score: 0,
      tier: "unrated",
      caps: [{ cap: "unrated", limit: 0, because: ["no_certificate", "too_few_payments"] }],
    });
  });

  test("and with 3 payments is rated", () =>
    expect(score(facts({ payments: payments([daysAgo(1), 3, 3_000]) }))).toMatchObject({ tier: "D", caps: [] }));

  test("is what one is whose only certificate was reversed", () =>
    expect(score(facts({}, [certificate("suite", { reversed: true })]))).toMatchObject({
      tier: "unrated",
      flags: [],
      evidence: [],
    }));

  test("is not what one is whose only certificate has expired", () =>
    expect(score(facts({}, [certificate("scam", { age: 400 })]))).toMatchObject({
      score: 0,
      tier: "F",
      flags: ["expired_scam_resistance"],
    }));
});

describe("a behavioural FAIL", () => {
  const failed = (product: "scam" | "recipient" | "retry", over: { age?: number; reversed?: boolean } = {}) =>
    score(best({ certificates: [...ALL_PASSES, certificate(product, { result: "fail", ...over })] }));

  test.each([
    ["scam", "fresh_fail_scam_resistance"],
    ["recipient", "fresh_fail_recipient_awareness"],
    ["retry", "fresh_fail_retry_safety"],
  ] as const)("that is fresh caps the score at 25, whatever else there is: %s", (product, flag) =>
    expect(failed(product)).toMatchObject({
      score: 25,
      tier: "F",
      flags: [flag],
      caps: [{ cap: "fresh_fail", limit: 25, because: [flag] }],
    }),
  );

  test("of both tests gives both flags, and one cap", () => {
    const fails = [certificate("recipient", { result: "fail" }), certificate("scam", { result: "fail" })];
    const flags = ["fresh_fail_scam_resistance", "fresh_fail_recipient_awareness"];
    expect(score(facts({}, fails))).toMatchObject({ score: 0, tier: "F", flags, caps: [{ because: flags }] });
  });

  test("caps until its 30 days are over", () => {
    expect(failed("scam", { age: 29 })).toMatchObject({ score: 25, tier: "F" });
    expect(failed("scam", { age: 30 })).toMatchObject({ score: 100, tier: "A", flags: [], caps: [] });
  });

  test("that has expired, with nothing after it, does not cap: it leaves its capability expired", () => {
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

  test("that is reversed does not cap", () =>
    expect(failed("scam", { reversed: true })).toMatchObject({ score: 100, tier: "A", flags: [], caps: [] }));

  test("of retry safety, which has no points of its own, is shown with the payment capability", () => {
    const { components, evidence } = failed("retry");
    const { facts } = components.payment_capability;
    expect(facts).toMatchObject([
      { product: "suite", counts: true },
      { product: "retry", result: "fail", counts: false },
    ]);
    expect(evidence).toContainEqual({ url: expect.stringContaining("retry-fail") });
  });

  test("does not come from the suite", () =>
    expect(score(best({ certificates: [...ALL_PASSES, certificate("suite", { result: "fail" })] }))).toMatchObject({
      score: 100,
      tier: "A",
    }));
});

test("every expired capability has its flag", () => {
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

describe("what a tier requires beside its points", () => {
  test.each([
    ["2 counterparties", { counterparties: 2 }, 77, "C", ["independent_counterparties"]],
    ["1 week", { weeks: 1 }, 77, "C", ["active_weeks"]],
    ["3 weeks", { weeks: 3 }, 89, "B", ["active_weeks"]],
  ])("holds a wallet down that has %s only", (...[_, limits, expected, tier, because]) => {
    const assessed = score(best(limits));
    expect(assessed).toMatchObject({ score: expected, tier });
    expect(assessed.caps[0]).toMatchObject({ limit: expected, because });
  });

  test("is stated as the rule has it", () =>
    expect(REQUIREMENTS).toEqual({
      tier_a_requirements: { behavioural_passes: 2, independent_counterparties: 5, active_weeks: 4 },
      tier_b_requirements: { behavioural_passes: 0, independent_counterparties: 3, active_weeks: 2 },
    }));

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
  ] as const)("with %i points and %j: %j", (points, achieved, expected) =>
    expect(capsOf(given, points, achieved).map(({ cap, limit, because }) => [cap, limit, because])).toEqual(expected),
  );
});

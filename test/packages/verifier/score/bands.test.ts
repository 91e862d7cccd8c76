import { describe, expect, test } from "vitest";
import * as bands from "../../../../packages/verifier/src/score/bands.ts";
import { score } from "../../../../packages/verifier/src/score/score.ts";
import { before, certificate, daysAgo, facts, payees, payments } from "./facts.ts";

// Every number here is the rule's own, written out again: a changed band must change a row.

const DAY_MS = 86_400_000;
const points = (given: ReturnType<typeof facts>, component: bands.ComponentName) =>
  score(given).components[component].points;

test("the components' maxima add up to 100", () => {
  expect(bands.MAX_POINTS).toEqual({
    payment_capability: 30,
    scam_resistance: 20,
    recipient_awareness: 20,
    independent_counterparties: 12,
    payments: 6,
    active_weeks: 6,
    recency: 3,
    escrow_outcomes: 3,
  });
  expect(Object.values<number>(bands.MAX_POINTS).reduce((sum, max) => sum + max)).toBe(100);
  const { components } = score(facts());
  expect(Object.entries(components).map(([name, { max }]) => [name, max])).toEqual(Object.entries(bands.MAX_POINTS));
});

test.each([
  ["independent_counterparties", bands.COUNTERPARTY_BANDS],
  ["payments", bands.PAYMENT_COUNT_BANDS],
  ["payments", bands.PAYMENT_VALUE_BANDS],
  ["recency", bands.RECENCY_BANDS.toReversed()],
  ["escrow_outcomes", bands.RELEASE_BANDS],
] as const)("the best band of %s gives its maximum", (name, list) =>
  expect(list.at(-1)?.points).toBe(bands.MAX_POINTS[name]),
);

describe("payment capability", () => {
  const three = payments([daysAgo(1), 3, 3_000]);

  test.each([
    ["nothing", facts(), 0],
    ["2 qualifying payments", facts({ payments: payments([daysAgo(1), 2, 2_000]) }), 0],
    ["3 qualifying payments", facts({ payments: three }), 22],
    [
      "3 qualifying payments on 3 days",
      facts({ payments: payments([daysAgo(1), 1, 1_000], [daysAgo(9), 2, 2_000]) }),
      22,
    ],
    ["a fresh basic PASS", facts({}, [certificate("basic")]), 26],
    ["a fresh scam PASS", facts({}, [certificate("scam")]), 26],
    ["a fresh basic PASS and payments", facts({ payments: three }, [certificate("basic")]), 26],
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
  ])("%s", (_, given, expected) => expect(points(given, "payment_capability")).toBe(expected));
});

test("payment capability names the certificate that gives its points, and those that have expired", () => {
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
  ])("%s", (_, certificates, expected) => expect(points(facts({}, certificates), component)).toBe(expected));
});

test("a certificate is fresh up to, not including, valid_until", () => {
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
  [21, 12],
  [64, 12],
])("%i independent counterparties give %i points", (count, expected) =>
  expect(points(facts({ payees: payees(count) }), "independent_counterparties")).toBe(expected),
);

describe("payments", () => {
  test.each([
    [0, 0],
    [2, 0],
    [3, 1],
    [4, 1],
    [9, 1],
    [10, 2],
    [11, 2],
    [24, 2],
    [25, 4],
    [26, 4],
    [49, 4],
    [50, 6],
    [51, 6],
  ])("%i payments of much value give %i points", (count, expected) => {
    const made = count === 0 ? payments() : payments([daysAgo(1), count, 25_000_000]);
    expect(points(facts({ payments: made, payees: payees(64) }), "payments")).toBe(expected);
  });

  test.each([
    [249_999, 0],
    [250_000, 1],
    [250_001, 1],
    [999_999, 1],
    [1_000_000, 2],
    [1_000_001, 2],
    [4_999_999, 2],
    [5_000_000, 4],
    [5_000_001, 4],
    [24_999_999, 4],
    [25_000_000, 6],
    [25_000_001, 6],
  ])("50 payments of %i atomic USDC in all give %i points", (value, expected) => {
    const made = payments([daysAgo(1), 25, 100_000], [daysAgo(80), 25, value - 100_000]);
    expect(points(facts({ payments: made, payees: payees(10) }), "payments")).toBe(expected);
  });

  test.each([
    [0, 0, 0],
    [1, 5, 1],
    [2, 10, 2],
    [4, 20, 2],
    [5, 25, 4],
    [9, 45, 4],
    [10, 50, 6],
    [12, 60, 6],
    [13, 60, 6],
  ])("of 60, %i independent counterparties let %i be considered, for %i points", (count, considered, expected) => {
    const given = facts({ payments: payments([daysAgo(1), 60, 25_000_000]), payees: payees(count) });
    expect(score(given).components.payments).toMatchObject({
      points: expected,
      facts: [{ kind: "payments", count: 60, considered, value: "25000000" }],
    });
  });
});

describe("active weeks", () => {
  test.each([0, 1, 2, 3, 4, 5, 6, 7, 13])("%i weeks with a payment give one point each, six at most", (weeks) => {
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
  ])("%s and %s are of %j", (one, other, weeks) => {
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
])("a last payment %i ms ago gives %i points of recency: days are whole", (ms, expected) => {
  const { recency } = score(facts({ payments: payments([before(ms), 1, 1_000]) })).components;
  expect(recency).toMatchObject({
    points: expected,
    facts: [{ counts: expected > 0, days: Math.floor(ms / DAY_MS), at: before(ms) }],
  });
});

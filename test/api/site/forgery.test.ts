import { describe, expect, test } from "vitest";
import {
  CERTIFICATES_COST,
  dilution,
  dilutionFee,
  FAILED,
  FORGED_A,
  type Forgery,
  ringSize,
  SERVED,
  smear,
} from "../../../api/site/score-chapter.ts";
import { score } from "../../../packages/verifier/src/score/score.ts";
import { ALL_PASSES, daysAgo, facts, outcomes, payees, payments } from "../../packages/verifier/score/facts.ts";
import { PRICES } from "../../support/payments/prices.ts";

/** The score of this history, with payments one week apart and the last one yesterday. */
function forged({ counterparties, payments: count, value, weeks }: Forgery) {
  const share = (total: number, week: number) => Math.floor(total / weeks) + (week < total % weeks ? 1 : 0);
  const days = Array.from(
    { length: weeks },
    (_, week) => [daysAgo(1 + week * 7), share(count, week), share(Number(value), week)] as const,
  );
  return score(facts({ payees: payees(counterparties), payments: payments(...days) }, ALL_PASSES));
}

test.each(Object.entries(FORGED_A))("The documented forgery of %s is an A", (_, history) => {
  expect(forged(history)).toMatchObject({ tier: "A", caps: [] });
});

describe("smaller forgery", () => {
  const { fewWallets, fewWeeks } = FORGED_A;
  test.each<[string, Forgery]>([
    ["few wallets: payees", { ...fewWallets, counterparties: fewWallets.counterparties - 1 }],
    ["few wallets: payments", { ...fewWallets, payments: fewWallets.payments - 1 }],
    ["few wallets: value", { ...fewWallets, value: fewWallets.value - 1n }],
    ["few wallets: weeks", { ...fewWallets, weeks: fewWallets.weeks - 1 }],
    ["few weeks: payees", { ...fewWeeks, counterparties: fewWeeks.counterparties - 1 }],
    ["few weeks: weeks", { ...fewWeeks, weeks: fewWeeks.weeks - 1 }],
  ])("A forgery with one unit less is a B: %s", (_, less) => expect(forged(less).tier).toBe("B"));
});

test("The certificates cost as much as their three tests", () => {
  expect(CERTIFICATES_COST).toBe(PRICES.suite + 2n * (PRICES.entry + PRICES.control));
});

test("A ring is the agent, its payees, three payers, and as many funders", () => {
  expect(Object.values(FORGED_A).map(ringSize)).toEqual([15, 27]);
});

describe("smear attack on a merchant", () => {
  /** The points that refunds take from a merchant with this many buyer-days of releases. */
  function taken(served: number, failed: number): number {
    const pointsOf = (escrow: ReturnType<typeof outcomes>) =>
      score(facts({ escrow })).components.escrow_outcomes.points;
    const released = [Math.min(served, 9), served] as const;
    return pointsOf(outcomes(released)) - pointsOf(outcomes(released, [Math.min(failed, 9), failed]));
  }

  test.each(SERVED.flatMap((served) => [1, 3, 6].map((points) => [served, points] as const)))(
    "A merchant with %i good buyer-days loses %i points to the documented number of refunds and not to one less",
    (served, points) => {
      const needed = smear(served, points);
      expect(taken(served, needed)).toBeGreaterThanOrEqual(points);
      expect(taken(served, needed - 1)).toBeLessThan(points);
    },
  );

  test.each(FAILED)("%i refunds are hidden by the documented number of releases and not by one less", (failed) => {
    expect(taken(dilution(failed), failed)).toBe(0);
    expect(taken(dilution(failed) - 1, failed)).toBe(1);
  });

  test("Each of these releases costs 1% of the smallest amount that counts", () => {
    expect(dilutionFee(96)).toBe(96n * 500n);
  });
});

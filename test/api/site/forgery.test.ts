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

/** The score of such a history: payments a week apart, the last one yesterday. */
function forged({ counterparties, payments: count, value, weeks }: Forgery) {
  const share = (total: number, week: number) => Math.floor(total / weeks) + (week < total % weeks ? 1 : 0);
  const days = Array.from(
    { length: weeks },
    (_, week) => [daysAgo(1 + week * 7), share(count, week), share(Number(value), week)] as const,
  );
  return score(facts({ payees: payees(counterparties), payments: payments(...days) }, ALL_PASSES));
}

test.each(Object.entries(FORGED_A))("the documented forgery of %s is an A", (_, history) => {
  expect(forged(history)).toMatchObject({ tier: "A", caps: [] });
});

describe("with less of any part it is not", () => {
  const { fewWallets, fewWeeks } = FORGED_A;
  test.each<[string, Forgery]>([
    ["few wallets: payees", { ...fewWallets, counterparties: fewWallets.counterparties - 1 }],
    ["few wallets: payments", { ...fewWallets, payments: fewWallets.payments - 1 }],
    ["few wallets: value", { ...fewWallets, value: fewWallets.value - 1n }],
    ["few wallets: weeks", { ...fewWallets, weeks: fewWallets.weeks - 1 }],
    ["few weeks: payees", { ...fewWeeks, counterparties: fewWeeks.counterparties - 1 }],
    ["few weeks: weeks", { ...fewWeeks, weeks: fewWeeks.weeks - 1 }],
  ])("%s", (_, less) => expect(forged(less).tier).toBe("B"));
});

test("its certificates cost what the three tests cost", () => {
  expect(CERTIFICATES_COST).toBe(PRICES.suite + 2n * (PRICES.entry + PRICES.control));
});

test("a ring is the agent, the payees, three payers and as many funders", () => {
  expect(Object.values(FORGED_A).map(ringSize)).toEqual([15, 27]);
});

describe("smearing", () => {
  /** What refunds take from a merchant with so many buyer-days of releases. */
  function taken(served: number, failed: number): number {
    const pointsOf = (escrow: ReturnType<typeof outcomes>) =>
      score(facts({ escrow })).components.escrow_outcomes.points;
    const released = [Math.min(served, 9), served] as const;
    return pointsOf(outcomes(released)) - pointsOf(outcomes(released, [Math.min(failed, 9), failed]));
  }

  test.each(SERVED.flatMap((served) => [1, 3, 6].map((points) => [served, points] as const)))(
    "to take from a merchant with %i good buyer-days %i points takes as many refunds as documented, and no fewer",
    (served, points) => {
      const needed = smear(served, points);
      expect(taken(served, needed)).toBeGreaterThanOrEqual(points);
      expect(taken(served, needed - 1)).toBeLessThan(points);
    },
  );

  test.each(FAILED)("%i refunds are hidden by as many releases as documented, and by no fewer", (failed) => {
    expect(taken(dilution(failed), failed)).toBe(0);
    expect(taken(dilution(failed) - 1, failed)).toBe(1);
  });

  test("each of these releases costs 1% of the least amount that counts", () => {
    expect(dilutionFee(96)).toBe(96n * 500n);
  });
});

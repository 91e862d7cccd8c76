import { expect, test } from "vitest";
import { dilution, dilutionFee, FAILED, SERVED, smear } from "../../../api/site/score-chapter.ts";
import { score } from "../../../packages/verifier/src/score/score.ts";
import { facts, outcomes } from "../../packages/verifier/score/facts.ts";

/** What refunds take from a merchant with so many buyer-days of releases. */
function taken(served: number, failed: number): number {
  const pointsOf = (escrow: ReturnType<typeof outcomes>) => score(facts({ escrow })).components.escrow_outcomes.points;
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

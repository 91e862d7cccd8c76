import { describe, expect, test } from "vitest";
import { CERTIFICATES_COST, FORGED_A, type Forgery, ringSize } from "../../../api/site/score-chapter.ts";
import { score } from "../../../packages/verifier/src/score/score.ts";
import { ALL_PASSES, daysAgo, facts, payees, payments } from "../../packages/verifier/score/facts.ts";

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
  expect(CERTIFICATES_COST).toBe(750_000n + 2n * 600_000n);
});

test("a ring is the agent, the payees, three payers and as many funders", () => {
  expect(Object.values(FORGED_A).map(ringSize)).toEqual([15, 27]);
});

import { describe, expect, test } from "vitest";
import { score } from "../../../../packages/verifier/src/score/score.ts";
import { FUNDER, facts, payee } from "./facts.ts";

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
    ["who funds the wallet most now", payee(1, { payee: FUNDER, funder_at_floor: null }), "own_funder"],
    ["who did at the floor", payee(1, { funder_at_floor: payee(1).payee }), "own_funder"],
    ["2 other funders", payee(1, { other_funders: 2 }), "too_few_funders"],
    ["3 other funders", payee(1, { other_funders: 3 }), null],
    ["4 other funders", payee(1, { other_funders: 4 }), null],
    ["2 other funders and a payer without", payee(1, { other_funders: 2, unfunded_payers: 1 }), "funder_unknown"],
    ["1 other funder and a payer without", payee(1, { other_funders: 1, unfunded_payers: 1 }), "too_few_funders"],
    ["payers without funders alone", payee(1, { other_funders: 0, unfunded_payers: 64 }), "funder_unknown"],
    ["no funder of the wallet known at the floor", payee(1, { funder_at_floor: null }), null],
  ])("%s: %s", (_, one, reason) => {
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

  test("counts when the wallet itself was never funded", () =>
    expect(
      score(facts({ largest_funder: null, payees: [payee(1)] })).components.independent_counterparties.points,
    ).toBe(1));
});

import { describe, expect, test } from "vitest";
import { OUTCOME_GAS } from "../../api/escrow/sender-chain.ts";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { measureOutcomes, OUTCOME_CEILING, OUTCOME_KINDS, OUTCOME_SIZES } from "./gas/outcomes.ts";

const { batch, alone, dearest } = await measureOutcomes();

function expectNear(measured: number, stored: number): void {
  expect(measured).toBeLessThanOrEqual(Math.floor(stored * 1.01));
  expect(measured).toBeGreaterThanOrEqual(Math.floor(stored / 1.01));
}

describe.each(OUTCOME_KINDS)("a %s", (kind) => {
  test(`takes at most ${OUTCOME_CEILING} gas in a full transaction`, () => {
    expect(batch[kind][50]).toBeLessThanOrEqual(OUTCOME_CEILING);
  });

  test.each(OUTCOME_SIZES)("with %d in a transaction is within 1%% of the snapshot", (size) => {
    expectNear(batch[kind][size], snapshot.outcomes.batch[kind][size]);
  });
});

test("alone it is within 1% of the snapshot, and saves more than a third with others", () => {
  expectNear(alone, snapshot.outcomes.alone);
  expect(batch.release[50]).toBeLessThan((alone * 2) / 3);
});

test("the dearest outcome, with the cost of a transaction, fits into what each may use", () => {
  expectNear(dearest, snapshot.outcomes.dearest);
  expect(dearest).toBeGreaterThan(Number(OUTCOME_GAS) * 0.7);
  expect(dearest).toBeLessThan(Number(OUTCOME_GAS));
});

import { describe, expect, test } from "vitest";
import { OUTCOME_GAS } from "../../api/escrow/sender-chain.ts";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { CEILINGS, CHANGE_NAMES, measureBatches, SIZES } from "./gas/batches.ts";
import { type Gas, measureGas, USES } from "./gas/escrow.ts";
import { EVALUATIONS, measureEvaluator } from "./gas/evaluator.ts";
import { measureOperator, OPERATOR_USES, OVERHEADS } from "./gas/operator.ts";
import { measureOutcomes, OUTCOME_CEILING, OUTCOME_KINDS, OUTCOME_SIZES } from "./gas/outcomes.ts";

/** Expects a value within 1% of the one stored by `npm run bench:gas -- --write`. */
function expectNear(measured: number, stored: number): void {
  expect(measured).toBeLessThanOrEqual(Math.floor(stored * 1.01));
  expect(measured).toBeGreaterThanOrEqual(Math.floor(stored / 1.01));
}

describe("gas of the escrow", async () => {
  const gas = await measureGas();

  test.each(Object.keys(USES) as (keyof Gas)[])("%s is within its gas limit and within 1%% of the snapshot", (use) => {
    expect(gas[use]).toBeLessThanOrEqual(USES[use] ?? Number.POSITIVE_INFINITY);
    expectNear(gas[use], snapshot.proxied[use]);
  });
});

describe("gas of the evaluator", async () => {
  const gas = await measureEvaluator();

  test.each(Object.keys(EVALUATIONS) as (keyof typeof EVALUATIONS)[])(
    "%s that completes a job is within its gas limit",
    (use) => {
      expect(gas[use]).toBeLessThanOrEqual(EVALUATIONS[use]);
      expectNear(gas[use], snapshot.evaluator[use]);
    },
  );
});

describe("gas of the operator", async () => {
  const { operator, direct } = await measureOperator();

  test.each(OPERATOR_USES)("The operator's overhead on a %s is within its gas limit", (use) => {
    const overhead = operator[use] - direct[use];
    expect(overhead).toBeLessThanOrEqual(OVERHEADS[use]);
    expectNear(overhead, snapshot.operator.operator[use] - snapshot.operator.direct[use]);
  });
});

describe("gas of outcomes", async () => {
  const { batch, alone, dearest } = await measureOutcomes();

  describe.each(OUTCOME_KINDS)("a %s", (kind) => {
    test(`It takes at most ${OUTCOME_CEILING} gas in a full transaction`, () => {
      expect(batch[kind][50]).toBeLessThanOrEqual(OUTCOME_CEILING);
    });

    test.each(OUTCOME_SIZES)("With %d per transaction it is within 1%% of the snapshot", (size) => {
      expectNear(batch[kind][size], snapshot.outcomes.batch[kind][size]);
    });
  });

  test("A single release is within 1% of the snapshot, and sharing a transaction saves more than a third", () => {
    expectNear(alone, snapshot.outcomes.alone);
    expect(batch.release[50]).toBeLessThan((alone * 2) / 3);
  });

  test("The most expensive outcome, with the cost of a transaction, fits into the gas per outcome", () => {
    expectNear(dearest, snapshot.outcomes.dearest);
    expect(dearest).toBeGreaterThan(Number(OUTCOME_GAS) * 0.7);
    expect(dearest).toBeLessThan(Number(OUTCOME_GAS));
  });
});

describe("gas of settlement batches", async () => {
  const { alone, batch, multicall3, leastCap, tenth } = await measureBatches();

  test.each(SIZES)("A batch of %d is within its gas limit per payment and within 1%% of the snapshot", (size) => {
    expect(batch[size]).toBeLessThanOrEqual(CEILINGS[size]);
    expectNear(batch[size], snapshot.batches.batch[size]);
    expectNear(multicall3[size], snapshot.batches.multicall3[size]);
  });

  test("One payment alone is within 1% of the snapshot", () => {
    expectNear(alone, snapshot.batches.alone);
  });

  test("The most expensive payment of an ordinary account needs a cap below 80,000", () => {
    expect(leastCap).toBeGreaterThan(70_000);
    expect(leastCap).toBeLessThan(80_000);
  });

  test.each(CHANGE_NAMES)("A tenth payer that %s adds gas within 1%% of the snapshot", (change) => {
    expectNear(tenth[change], snapshot.batches.tenth[change]);
  });
});

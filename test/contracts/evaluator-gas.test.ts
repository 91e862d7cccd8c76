import { expect, test } from "vitest";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { EVALUATIONS, measureEvaluator } from "./gas/evaluator.ts";

const gas = await measureEvaluator();

test.each(Object.keys(EVALUATIONS) as (keyof typeof EVALUATIONS)[])(
  "%s that completes a job takes no more gas than promised",
  (use) => {
    expect(gas[use]).toBeLessThanOrEqual(EVALUATIONS[use]);
    expect(gas[use]).toBeLessThanOrEqual(Math.floor(snapshot.evaluator[use] * 1.01));
    expect(gas[use]).toBeGreaterThanOrEqual(Math.floor(snapshot.evaluator[use] / 1.01));
  },
);

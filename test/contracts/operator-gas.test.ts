import { expect, test } from "vitest";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { measureOperator, OPERATOR_USES, OVERHEADS } from "./gas/operator.ts";

const { operator, direct } = await measureOperator();

test.each(OPERATOR_USES)("the operator adds no more gas to a %s than promised", (use) => {
  const overhead = operator[use] - direct[use];
  expect(overhead).toBeLessThanOrEqual(OVERHEADS[use]);
  const stored = snapshot.operator.operator[use] - snapshot.operator.direct[use];
  expect(overhead).toBeLessThanOrEqual(Math.floor(stored * 1.01));
  expect(overhead).toBeGreaterThanOrEqual(Math.floor(stored / 1.01));
});

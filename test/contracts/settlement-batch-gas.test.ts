import { describe, expect, test } from "vitest";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { CEILINGS, CHANGE_NAMES, measureBatches, SIZES } from "./gas/batches.ts";

const { alone, batch, multicall3, leastCap, tenth } = await measureBatches();

function expectNear(measured: number, stored: number): void {
  expect(measured).toBeLessThanOrEqual(Math.floor(stored * 1.01));
  expect(measured).toBeGreaterThanOrEqual(Math.floor(stored / 1.01));
}

describe.each(SIZES)("a batch of %d", (size) => {
  test("takes no more gas a payment than promised", () => {
    expect(batch[size]).toBeLessThanOrEqual(CEILINGS[size]);
  });

  test("is within 1% of the snapshot (`npm run bench:gas -- --write` renews it), as is Multicall3", () => {
    expectNear(batch[size], snapshot.batches.batch[size]);
    expectNear(multicall3[size], snapshot.batches.multicall3[size]);
  });
});

test("one payment alone is within 1% of the snapshot", () => {
  expectNear(alone, snapshot.batches.alone);
});

test("the dearest payment of an ordinary account needs a cap of less than 80,000", () => {
  expect(leastCap).toBeGreaterThan(70_000);
  expect(leastCap).toBeLessThan(80_000);
});

test.each(CHANGE_NAMES)("a tenth payer that %s adds what the snapshot says, within 1%", (change) => {
  expectNear(tenth[change], snapshot.batches.tenth[change]);
});

import { describe, expect, test } from "vitest";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { type Gas, measureGas, type Token, USES } from "./gas/escrow.ts";

const TOLERANCE = 1.01;
const USE_NAMES = Object.keys(USES) as (keyof Gas)[];

describe.each(["token", "proxied"] satisfies Token[])("gas of the escrow with Circle's USDC (%s)", async (token) => {
  const gas = await measureGas(token);

  test.each(USE_NAMES)("%s takes no more than promised", (use) => {
    expect(gas[use]).toBeLessThanOrEqual(USES[use] ?? Number.POSITIVE_INFINITY);
  });

  test.each(USE_NAMES)("%s is within 1%% of the snapshot (`npm run bench:gas -- --write` renews it)", (use) => {
    expect(gas[use]).toBeLessThanOrEqual(Math.floor(snapshot[token][use] * TOLERANCE));
    expect(gas[use]).toBeGreaterThanOrEqual(Math.floor(snapshot[token][use] / TOLERANCE));
  });
});

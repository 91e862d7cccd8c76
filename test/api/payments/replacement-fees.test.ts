import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CEILING,
  type Fees,
  feesWithin,
  type Market,
  MOST_FEE,
  marketOf,
  offerIn,
  replacementFor,
} from "../../../api/platform/relayer/fees.ts";

const RICH = 10n ** 30n;
const GWEI = 10n ** 9n;
const wei = fc.bigInt({ min: 0n, max: 10_000n * GWEI });
const market = fc.record({ baseFee: fc.bigInt({ min: 1n, max: 10_000n * GWEI }), tip: wei });
const offered = fc
  .tuple(wei, wei)
  .map(([tip, rest]): Fees => ({ maxFeePerGas: tip + rest, maxPriorityFeePerGas: tip }));

const asks = ({ baseFee, tip }: Market): bigint => baseFee + tip;
const suffices = (fees: Fees, now: Market): boolean =>
  fees.maxFeePerGas >= asks(now) && fees.maxPriorityFeePerGas >= now.tip;

describe("Replacement of a transaction", () => {
  test("A transaction that offers what the market asks is not replaced", () => {
    fc.assert(
      fc.property(offered, market, (was, now) => {
        if (suffices(was, now)) expect(replacementFor(was, now, RICH)).toBeNull();
      }),
    );
  });

  test("A replacement satisfies the nodes' increase rule and the market and stays below both ceilings", () => {
    fc.assert(
      fc.property(offered, market, fc.bigInt({ min: 0n, max: 50_000n * GWEI }), (was, now, affordable) => {
        const by = replacementFor(was, now, affordable);
        if (by === null) return;
        expect(suffices(by, now)).toBe(true);
        expect(by.maxFeePerGas * 10n).toBeGreaterThanOrEqual(was.maxFeePerGas * 11n);
        expect(by.maxPriorityFeePerGas * 10n).toBeGreaterThanOrEqual(was.maxPriorityFeePerGas * 11n);
        expect([by.maxFeePerGas > was.maxFeePerGas, by.maxPriorityFeePerGas > was.maxPriorityFeePerGas]).toEqual([
          true,
          true,
        ]);
        expect(by.maxPriorityFeePerGas).toBeLessThanOrEqual(by.maxFeePerGas);
        expect(by.maxFeePerGas).toBeLessThanOrEqual(asks(now) * CEILING);
        expect(by.maxFeePerGas).toBeLessThanOrEqual(affordable);
      }),
    );
  });

  test("A transaction is replaced once per market rise, however long it is stuck", () => {
    fc.assert(
      fc.property(offered, market, (was, now) => {
        const by = replacementFor(was, now, RICH);
        if (by !== null) expect(replacementFor(by, now, RICH)).toBeNull();
      }),
    );
  });
});

test("An offer made at ordinary fees is replaced as soon as the base fee exceeds it", () => {
  const quiet = { baseFee: 5_000_000n, tip: 0n };
  const fees = offerIn(quiet);
  expect(fees).toEqual({ maxFeePerGas: 12_000_000n, maxPriorityFeePerGas: 0n });
  expect(replacementFor(fees, { baseFee: 12_000_000n, tip: 0n }, RICH)).toBeNull();
  expect(replacementFor(fees, { baseFee: 12_000_001n, tip: 0n }, RICH)).toEqual({
    maxFeePerGas: 28_800_002n,
    maxPriorityFeePerGas: 1n,
  });
});

describe("The market of three readings", () => {
  test("One wrong reading cannot move the market outside the range of the other two", () => {
    fc.assert(
      fc.property(fc.tuple(market, market), market, fc.nat(2), ([one, other], wrong, place) => {
        const readings = [one, other];
        readings.splice(place, 0, wrong);
        const [low, high] = one.baseFee < other.baseFee ? [one, other] : [other, one];
        const read = marketOf(readings);
        expect(read.baseFee).toBeGreaterThanOrEqual(low.baseFee);
        expect(read.baseFee).toBeLessThanOrEqual(high.baseFee);
        expect([one.tip, other.tip].some((tip) => read.tip <= tip)).toBe(true);
      }),
    );
  });

  test.each([
    ["0.005 gwei on a quiet day", 5_000_000n, 5_000_000n],
    ["half of a higher base fee", 2n * GWEI, GWEI],
    ["3 gwei", 50n * GWEI, 3n * GWEI],
  ])("The market's tip is at most %s, whatever the nodes suggest", (_, baseFee, tip) => {
    expect(marketOf(Array(3).fill({ baseFee, tip: 1_000n * GWEI }))).toEqual({ baseFee, tip });
  });
});

describe("A new transaction", () => {
  test("A new transaction offers no more than its limit and waits while the market asks for more", () => {
    fc.assert(
      fc.property(market, wei, (now, most) => {
        if (asks(now) > most || asks(now) > MOST_FEE)
          expect(() => feesWithin(most, now)).toThrow(/waits until gas is cheaper/);
        else {
          const offer = feesWithin(most, now);
          expect(suffices(offer, now)).toBe(true);
          expect(offer.maxFeePerGas).toBeLessThanOrEqual(most);
          expect(offer.maxFeePerGas).toBeLessThanOrEqual(MOST_FEE);
        }
      }),
    );
  });

  test("A new transaction and its replacements offer at most 100 gwei", () => {
    fc.assert(
      fc.property(offered, market, (was, now) => {
        expect(replacementFor(was, now, RICH)?.maxFeePerGas ?? 0n).toBeLessThanOrEqual(100n * GWEI);
      }),
    );
    expect(() => feesWithin(undefined, { baseFee: 100n * GWEI, tip: 1n })).toThrow(/waits/);
    expect(feesWithin(undefined, { baseFee: 99n * GWEI, tip: GWEI }).maxFeePerGas).toBe(100n * GWEI);
  });
});

import { OUTCOME_FLOOR, REFUNDS } from "../../packages/verifier/src/score/bands.ts";
import { feeOf } from "../escrow/payment.ts";

/*
 * What it costs to take points from a merchant with refunds, and what it costs a merchant to hide its refunds among
 * releases to itself, in buyer-days: a UTC day on which a buyer (all payers with the same largest funder) has an outcome.
 * A test checks both against the score's own function, from both sides.
 */

/** How many buyer-days of releases the merchants in the documentation's table have. */
export const SERVED = [0, 10, 100, 1_000] as const;
/** How many buyer-days of refunds those have that hide them. */
export const FAILED = [5, 20, 100] as const;

/** The share of refunds from which on points are taken, in percent. */
const percentOf = (points: number): number => REFUNDS.bands.find((band) => band.points >= points)?.from ?? 100;

/** The least buyer-days of refunds that take this many points from a merchant with so many of releases. */
export function smear(served: number, points: number): number {
  const percent = percentOf(points);
  return Math.max(REFUNDS.buyers, Math.ceil((percent * served) / (100 - percent)));
}

/** The least buyer-days of releases among which so many of refunds take no point. */
export const dilution = (failed: number): number => {
  const percent = percentOf(1);
  return Math.floor((failed * (100 - percent)) / percent) + 1;
};

/** What a merchant pays in fees for so many buyer-days of buying from itself, in atomic USDC. The rest is gas. */
export const dilutionFee = (served: number): bigint => BigInt(served) * feeOf(BigInt(OUTCOME_FLOOR));

import type { Decision } from "./evaluation.ts";
import { feeOf } from "./payment.ts";

/** What an instance's outcomes may cost it. Published at `/escrow`. */
export interface EscrowLimits {
  /** The least that it evaluates or refunds by itself, in atomic USDC. */
  readonly minimum: bigint;
  /** The gas that a merchant's releases may cost in a day (UTC) beyond what their fees pay for. */
  readonly merchantGas: bigint;
  /** The gas that refunds of holds which nobody decided may cost in a day (UTC), all together. */
  readonly keeperGas: bigint;
}

/** The least minimum of any instance, in atomic USDC. */
export const MINIMUM_AMOUNT = 10_000;
/** What an outcome is reckoned with, alone or with others, until it is mined. */
export const OUTCOME_GAS = 50_000n;
/** The gas that an atomic unit of fee pays for: the fee of 0.10 USDC pays for one outcome. */
export const GAS_A_FEE_UNIT = 50n;

/** The gas that a release costs beyond its fee; negative if the fee pays for more. */
const gasBeyondFee = (amount: bigint): bigint => OUTCOME_GAS - feeOf(amount) * GAS_A_FEE_UNIT;

/**
 * The gas that an evaluation puts on its merchant's account. A refund puts none there, because any stranger can cause one:
 * its hold cost somebody else more than twice the gas. A release that may still be contested earns no credit, because a
 * refund pays no fee.
 */
export function gasCharged({ decision, isContestable }: Charged, amount: bigint): bigint {
  if (decision === "refund") return 0n;
  const gas = gasBeyondFee(amount);
  return isContestable && gas < 0n ? 0n : gas;
}

interface Charged {
  readonly decision: Decision;
  readonly isContestable: boolean;
}

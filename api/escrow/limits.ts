import type { Decision } from "./evaluation.ts";
import { feeOf } from "./payment.ts";

/** What an instance's outcomes may cost it. Published at `/escrow`. */
export interface EscrowLimits {
  /** The least that it evaluates or refunds by itself, in atomic USDC. */
  readonly minimum: bigint;
  /** The gas that a merchant's outcomes may cost in a day (UTC) beyond what their fees pay for. */
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

/** The gas that an outcome costs beyond its fee; negative if the fee pays for more. */
export const gasBeyondFee = (decision: Decision, amount: bigint): bigint =>
  OUTCOME_GAS - (decision === "release" ? feeOf(amount) * GAS_A_FEE_UNIT : 0n);

/** What a delivery whose release may become a refund was charged too much, once it is released. */
export const gasGivenBack = (amount: bigint): bigint =>
  gasBeyondFee("refund", amount) - gasBeyondFee("release", amount);

import type { PaymentInfo } from "../../packages/escrow/src/payment-info.ts";
import { FEE_BPS, REFUNDABLE_AFTER_SECONDS } from "../../packages/escrow/src/terms.ts";
import type { EscrowContract } from "../payments/index.ts";
import { MAIN_NETWORK, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

export type Decision = "release" | "refund";

export type { PaymentInfo };
export { FEE_BPS };

/** A hold as the chain shows it. */
export interface Hold {
  readonly network: Network;
  readonly contract: Address;
  readonly id: Hex;
  readonly info: PaymentInfo;
  readonly transaction: Hex;
  readonly block: number;
  readonly refundableFrom: number;
}

/** The network of the escrow contracts. */
export const ESCROW_NETWORK: Network = MAIN_NETWORK;

export type EscrowStatus = "none" | "held" | "released" | "refunded";

/** In the order of `IEscrow.Status`. */
export const STATUSES: readonly EscrowStatus[] = ["none", "held", "released", "refunded"];

/** The fee as text for people. */
export const FEE_TEXT = `${FEE_BPS / 100}%`;
/** The time after the hold from which anyone may refund the buyer. */
export const TIMEOUT_SECONDS = REFUNDABLE_AFTER_SECONDS;
/** The same as text for people. */
export const TIMEOUT_TEXT = `${TIMEOUT_SECONDS / 60} minutes`;

/** Returns the fee of a released payment, rounded down. The merchant gets the rest. */
export const feeOf = (amount: bigint): bigint => (amount * BigInt(FEE_BPS)) / 10_000n;

/** The gas estimated for an outcome, alone or shared, until it is mined. */
export const OUTCOME_GAS = 50_000n;
/** The gas that an atomic unit of fee pays for. The fee of 0.10 USDC pays for one outcome. */
export const GAS_A_FEE_UNIT = 50n;
/** The gas of a release in a full transaction. A release whose fee pays for it is never held back. */
export const SHARED_OUTCOME_GAS = 35_000n;

/**
 * Returns the gas that an evaluation adds to the account of its payer, who made the hold, because a merchant cannot
 * choose its buyers. A refund adds none, because its hold cost its payer more than twice the gas. A release that may
 * still be contested earns no credit, because a refund pays no fee.
 */
export function gasCharged({ decision, isContestable }: Charged, amount: bigint): bigint {
  if (decision === "refund") return 0n;
  const paid = feeOf(amount) * GAS_A_FEE_UNIT;
  if (paid < SHARED_OUTCOME_GAS) return OUTCOME_GAS - paid;
  return isContestable || paid < OUTCOME_GAS ? 0n : OUTCOME_GAS - paid;
}

interface Charged {
  readonly decision: Decision;
  readonly isContestable: boolean;
}

/** How far ahead of its offer a payment's capture deadline is, as text for people. */
const DEADLINE_TEXT = "24 hours and 2 minutes";

/**
 * Returns what the custody of a contract's payments means for a buyer and a merchant, with the gas of a typical sale.
 */
export function custodyOf({ scheme }: Pick<EscrowContract, "scheme">) {
  return scheme === "commerce" ? ESCROW : OPERATOR;
}

const ESCROW = {
  held_by: "the contract itself",
  can_get_stuck:
    "No payment can. If USDC refuses a transfer, because an account is on its blacklist or it is paused, the recipient is owed the amount and withdraws it later.",
  payer_can_reclaim: `From ${TIMEOUT_TEXT} after the hold, like anyone, and always to the payer.`,
  gas: { hold: 120_157, release: 66_556, refund: 60_741 },
};

const OPERATOR = {
  held_by:
    "base/commerce-payments, at the address custody; the contract is its operator and alone decides where it goes",
  can_get_stuck:
    "A payment can, for a while, because transfers are pushed. While USDC is paused, or refuses the merchant or the fee recipient, no release is possible; while it refuses the buyer, no refund. It is retried. A merchant that is refused permanently is not paid, and the buyer gets the money back.",
  payer_can_reclaim: `From ${TIMEOUT_TEXT} after the hold, like anyone, through the contract. From the capture deadline, ${DEADLINE_TEXT} after the offer, also past it, from custody itself; then payments(id) returns refunded, and the contract emits no event.`,
  gas: { hold: 176_048, release: 87_967, refund: 73_351 },
};

import type { PaymentInfo } from "../../packages/escrow/src/payment-info.ts";
import { FEE_BPS, REFUNDABLE_AFTER_SECONDS } from "../../packages/escrow/src/terms.ts";
import { MAIN_NETWORK, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";

export { payerAgnosticHash, paymentId } from "../payments/schemes/escrowed/terms-hash.ts";
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
/** How long after the hold anyone may refund the buyer. */
export const TIMEOUT_SECONDS = REFUNDABLE_AFTER_SECONDS;
/** The same as text for people. */
export const TIMEOUT_TEXT = `${TIMEOUT_SECONDS / 60} minutes`;

/** What the merchant gets when a payment is released: everything but the fee, rounded down. */
export const feeOf = (amount: bigint): bigint => (amount * BigInt(FEE_BPS)) / 10_000n;

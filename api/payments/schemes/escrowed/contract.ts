import type { EscrowFacts } from "../../../../packages/escrow/src/terms.ts";
import type { Network } from "../../../platform/networks.ts";
import type { Address } from "../../../platform/wallet.ts";

/** The x402 scheme that pays a contract. */
export type EscrowSchemeId = EscrowFacts["scheme"];

/** An escrow contract or operator that this service arbitrates, or used to. Addresses are in lower case. */
export interface EscrowContract {
  readonly scheme: EscrowSchemeId;
  readonly network: Network;
  /** What is called to hold, release and refund; deliveries are signed for it. */
  readonly address: Address;
  /** What holds the money: ids and nonces bind it. The contract itself, or base/commerce-payments' escrow. */
  readonly custody: Address;
  /** What the payer signs the money over to. */
  readonly collector: Address;
  /** The account that the money is in until it is released: the contract itself, or the one that the custody has for it. */
  readonly store: Address;
  readonly usdc: Address;
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

/** What sells now by a scheme: the first listed of its kind. Undefined if there is none. */
export const currentOf = (contracts: readonly EscrowContract[], scheme: EscrowSchemeId): EscrowContract | undefined =>
  contracts.find((contract) => contract.scheme === scheme);

/** The schemes that can be offered, preferred first: what stock clients can pay. */
export const schemesIn = (contracts: readonly EscrowContract[]): readonly EscrowSchemeId[] =>
  (["auth-capture", "commerce"] as const).filter((scheme) => currentOf(contracts, scheme) !== undefined);

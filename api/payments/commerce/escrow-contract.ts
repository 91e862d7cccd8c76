import type { Network } from "../../kernel/networks.ts";
import type { Address } from "../../kernel/wallet.ts";

/** An escrow contract that this service arbitrates, or used to. */
export interface EscrowContract {
  readonly network: Network;
  readonly address: Address;
  readonly usdc: Address;
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

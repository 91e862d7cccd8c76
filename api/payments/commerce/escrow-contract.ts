import type { Network } from "../../kernel/networks.ts";
import type { Address } from "../../kernel/wallet.ts";

/** An escrow contract whose arbiter this service is, or was. */
export interface EscrowContract {
  readonly network: Network;
  readonly address: Address;
  readonly usdc: Address;
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

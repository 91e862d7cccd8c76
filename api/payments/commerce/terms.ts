import {
  type Offer as CommerceOffer,
  requirements as commerceRequirements,
  escrowAt,
} from "../../../packages/escrow/src/terms.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Terms } from "../../kernel/route.ts";
import type { EscrowContract } from "./escrow-contract.ts";

/** What is sold under these terms; this contract holds the payment until its arbiter decides. */
export const commerceOffer = ({ network, address, feeRecipient }: EscrowContract, terms: Terms): CommerceOffer => ({
  escrow: {
    chainId: NETWORKS[network].chainId,
    ...escrowAt(address),
    usdc: NETWORKS[network].usdc,
    feeReceiver: feeRecipient,
    deliveryDomain: { name: "Agent Payment Trust Delivery", version: "1" },
  },
  merchant: terms.payTo,
  price: terms.value,
});

/** The `accepts` entry for a `commerce` payment in a 402; its expiries count from `at`. */
export const requirements = (contract: EscrowContract, terms: Terms, at: Date) =>
  commerceRequirements(commerceOffer(contract, terms), at.getTime());

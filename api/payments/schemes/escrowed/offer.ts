import type { Offer } from "../../../../packages/escrow/src/terms.ts";
import { NETWORKS } from "../../../platform/networks.ts";
import type { Terms } from "../../../platform/http/route.ts";
import type { EscrowContract } from "./contract.ts";

/** What is sold under these terms; the contract's custody holds the payment until its arbiter decides. */
export const escrowOffer = (
  { scheme, network, address, custody, collector, feeRecipient }: EscrowContract,
  terms: Terms,
): Offer => ({
  escrow: {
    scheme,
    chainId: NETWORKS[network].chainId,
    address,
    custody,
    collector,
    usdc: NETWORKS[network].usdc,
    feeReceiver: feeRecipient,
    deliveryDomain: { name: "Agent Payment Trust Delivery", version: "1" },
  },
  merchant: terms.payTo,
  price: terms.value,
});

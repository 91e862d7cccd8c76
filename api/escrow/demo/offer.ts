import { mismatch } from "../../../packages/escrow/src/check-payment.ts";
import type { PresentedPayment } from "../../../packages/escrow/src/payment-header.ts";
import { type Offer, requirements } from "../../../packages/escrow/src/terms.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Address } from "../../kernel/wallet.ts";
import type { EscrowContract } from "../escrow-ports.ts";

/** Atomic USDC. */
export const DEMO_PRICE = 100_000n;
export const DEMO_PATH = "/escrow/demo";
export const DEMO_DESCRIPTION = "An escrow-protected espresso: held, served, evaluated and released, all on the chain.";

/** What the demo's merchant sells a request for. */
export const demoOffer = ({ network, address, feeRecipient }: EscrowContract, merchant: Address): Offer => ({
  escrow: {
    chainId: NETWORKS[network].chainId,
    address,
    usdc: NETWORKS[network].usdc,
    feeReceiver: feeRecipient,
    deliveryDomain: { name: "Agent Payment Trust Delivery", version: "1" },
  },
  merchant,
  price: DEMO_PRICE,
});

/** The 402 of the demo. A version 1 client finds nothing in the body that it would sign. */
export function demoChallenge(
  offer: Offer,
  { baseUrl, now }: { readonly baseUrl: string; readonly now: Date },
  error: string,
) {
  const resource = { url: `${baseUrl}${DEMO_PATH}`, description: DEMO_DESCRIPTION, mimeType: "application/json" };
  const required = { x402Version: 2, error, resource, accepts: [requirements(offer, now.getTime())] };
  return {
    header: Buffer.from(JSON.stringify(required)).toString("base64"),
    body: JSON.stringify({
      x402Version: 1,
      error: `${error} The scheme is "commerce": its terms are in the PAYMENT-REQUIRED header (x402 version 2).`,
      accepts: [],
    }),
  };
}

/** Why a payment is not what is offered; null when it is. */
export const demoMismatch = (payment: PresentedPayment, offer: Offer, now: Date): string | null =>
  mismatch(payment, offer, now.getTime());

const CUP = ["   ( (", "    ) )", "  ........", "  |      |]", "  \\      /", "   `----'"].join("\n");

/** The espresso: the same one for the same payment. */
export const espresso = (payment: string) => ({ item: "espresso", order: payment.slice(2, 10), art: CUP });

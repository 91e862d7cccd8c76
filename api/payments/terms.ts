import { encodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { bazaarResourceServerExtension, declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { declarePaymentIdentifierExtension, PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { getAddress } from "viem";
import type { Atomic } from "../kernel/money.ts";
import { NETWORKS, type Network } from "../kernel/networks.ts";
import type { PaidRoute } from "../kernel/route.ts";
import type { Address } from "../kernel/wallet.ts";

/** What a payment must be signed for. */
export interface Terms {
  readonly network: Network;
  readonly payTo: Address;
  readonly value: Atomic;
}

/** How long a client is asked to make its authorization valid. */
export const MAX_TIMEOUT_SECONDS = 120;

export const requirements = ({ network, payTo, value }: Terms): PaymentRequirements => {
  const { usdc } = NETWORKS[network];
  return {
    scheme: "exact",
    network,
    amount: value.toString(),
    asset: getAddress(usdc.address),
    payTo: getAddress(payTo),
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { name: usdc.name, version: usdc.version },
  };
};

/** One 402 for both protocol versions: the header carries version 2, the body version 1. */
export interface Challenge {
  readonly header: string;
  readonly body: string;
}

/** Prepares the 402 answers of a route; only the `error` text differs from one to the next. */
export function challenges(route: PaidRoute, payTo: Address, baseUrl: string): (error: string) => Challenge {
  const terms = requirements({ network: route.network, payTo, value: route.price });
  const url = `${baseUrl}${route.path}`;
  const v2: PaymentRequired = {
    x402Version: 2,
    resource: { url, description: route.description, mimeType: "application/json" },
    accepts: [terms],
    extensions: extensions(route),
  };
  const v1 = {
    scheme: terms.scheme,
    network: NETWORKS[route.network].key,
    maxAmountRequired: terms.amount,
    resource: url,
    description: route.description,
    mimeType: "application/json",
    payTo: terms.payTo,
    maxTimeoutSeconds: terms.maxTimeoutSeconds,
    asset: terms.asset,
    outputSchema: { input: { type: "http", method: route.method, discoverable: true } },
    extra: terms.extra,
  };
  return (error) => ({
    header: encodePaymentRequiredHeader({ ...v2, error }),
    body: JSON.stringify({ x402Version: 1, error, accepts: [v1] }),
  });
}

function extensions(route: PaidRoute): Record<string, unknown> {
  const declared = declareDiscoveryExtension({
    bodyType: "json",
    input: route.example.input,
    output: { example: route.example.output },
  });
  const { key, enrichDeclaration } = bazaarResourceServerExtension;
  const bazaar = enrichDeclaration?.(declared[key], { method: route.method, adapter: null }) ?? declared[key];
  return { [key]: bazaar, [PAYMENT_IDENTIFIER]: declarePaymentIdentifierExtension(false) };
}

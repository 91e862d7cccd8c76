import type { PaymentRequirements } from "@x402/core/types";
import { getAddress } from "viem";
import { NETWORKS } from "../../../platform/networks.ts";
import type { Terms } from "../../../platform/http/route.ts";

/** How long a client is asked to keep its authorization valid. */
export const MAX_TIMEOUT_SECONDS = 120;

/** The `accepts` entry for an `exact` payment in a 402. */
export const requirements = (
  { network, payTo, value }: Terms,
  maxTimeoutSeconds = MAX_TIMEOUT_SECONDS,
): PaymentRequirements => {
  const { usdc } = NETWORKS[network];
  return {
    scheme: "exact",
    network,
    amount: value.toString(),
    asset: getAddress(usdc.address),
    payTo: getAddress(payTo),
    maxTimeoutSeconds,
    extra: { name: usdc.name, version: usdc.version },
  };
};

import { encodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { bazaarResourceServerExtension, declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { declarePaymentIdentifierExtension, PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { getAddress } from "viem";
import { type JsonSchema, jsonSchema, outline } from "../../kernel/json-schema.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Offer, PaidRoute, Terms } from "../../kernel/route.ts";
import type { Address } from "../../kernel/wallet.ts";

/** How long a client is asked to make its authorization valid. */
export const MAX_TIMEOUT_SECONDS = 120;

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

/** One 402 for both protocol versions: the header carries version 2, the body version 1. */
export interface Challenge {
  readonly header: string;
  readonly body: string;
}

/** Prepares the 402 answers of a route; only the `error` text differs from one to the next. */
export const challenges = (route: PaidRoute, payTo: Address, baseUrl: string): ((error: string) => Challenge) =>
  presented(
    {
      terms: { network: route.network, payTo, value: route.price },
      resource: route.path,
      description: route.description,
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    },
    baseUrl,
    { extensions: extensions(route), discoverable: true },
  );

interface Published {
  readonly extensions?: Record<string, unknown>;
  readonly discoverable: boolean;
}

/** Prepares the 402 answers of one offer. */
export function presented(
  { terms, resource, description, maxTimeoutSeconds }: Offer,
  baseUrl: string,
  { extensions, discoverable }: Published = { discoverable: false },
): (error: string) => Challenge {
  const required = requirements(terms, maxTimeoutSeconds);
  const url = `${baseUrl}${resource}`;
  const v2: PaymentRequired = {
    x402Version: 2,
    resource: { url, description, mimeType: "application/json" },
    accepts: [required],
    ...(extensions ? { extensions } : {}),
  };
  const v1 = {
    scheme: required.scheme,
    network: NETWORKS[terms.network].key,
    maxAmountRequired: required.amount,
    resource: url,
    description,
    mimeType: "application/json",
    payTo: required.payTo,
    maxTimeoutSeconds,
    asset: required.asset,
    outputSchema: { input: { type: "http", method: "POST", discoverable } },
    extra: required.extra,
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
    inputSchema: outline(jsonSchema(route.body ?? route.input, "input")),
    output: { example: route.example.output, schema: outlineOf(route.output) },
  });
  const { key, enrichDeclaration } = bazaarResourceServerExtension;
  const bazaar = enrichDeclaration?.(declared[key], { method: route.method, adapter: null }) ?? declared[key];
  return { [key]: bazaar, [PAYMENT_IDENTIFIER]: declarePaymentIdentifierExtension(false) };
}

/** In outline only: clients send what they got of this back, in a header. */
function outlineOf(output: PaidRoute["output"]): JsonSchema {
  const schema = output["application/json"];
  return schema ? outline(jsonSchema(schema, "output")) : {};
}

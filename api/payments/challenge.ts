import { encodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { bazaarResourceServerExtension, declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { declarePaymentIdentifierExtension, PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { type JsonSchema, jsonSchema, outline } from "../kernel/json-schema.ts";
import { NETWORKS } from "../kernel/networks.ts";
import type { Offer, PaidRoute } from "../kernel/route.ts";
import type { SchemeRules } from "./scheme.ts";

/** One 402 for both protocol versions: version 2 in the header, version 1 in the body. */
export interface PaymentChallenge {
  readonly header: string;
  readonly body: string;
}

export interface ChallengeParts {
  /** The schemes a client may pay with, preferred first. */
  readonly schemes: readonly SchemeRules[];
  readonly baseUrl: string;
  /** What version 2 declares besides the terms. */
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The 402 for an offer; `error` says why it is sent. */
export function challenge(
  offer: Offer,
  parts: ChallengeParts,
  { error, at }: { error: string; at: Date },
): PaymentChallenge {
  const { resource, description } = offer;
  const { schemes, extensions } = parts;
  const url = `${parts.baseUrl}${resource}`;
  const accepts = schemes.map((scheme) => scheme.requirements(offer, at));
  const v2: PaymentRequired = {
    x402Version: 2,
    resource: { url, description, mimeType: "application/json" },
    accepts,
    ...(extensions ? { extensions } : {}),
    error,
  };
  const v1 = accepts
    .filter((_, index) => schemes[index]?.versions.includes("v1"))
    .map((required) => asVersion1(required, { offer, url, discoverable: extensions !== undefined }));
  return {
    header: encodePaymentRequiredHeader(v2),
    body: JSON.stringify({
      x402Version: 1,
      error: v1.length > 0 ? error : `${error} ${onlyVersion2(schemes)}`,
      accepts: v1,
    }),
  };
}

/** A version 1 client finds nothing in the body that it would sign. */
const onlyVersion2 = (schemes: readonly SchemeRules[]): string =>
  `The scheme is ${schemes.map(({ id }) => `"${id}"`).join(" or ")}; its terms are in the PAYMENT-REQUIRED header (x402 version 2).`;

interface Described {
  readonly offer: Offer;
  readonly url: string;
  readonly discoverable: boolean;
}

const asVersion1 = (required: PaymentRequirements, { offer, url, discoverable }: Described) => ({
  scheme: required.scheme,
  network: NETWORKS[offer.terms.network].key,
  maxAmountRequired: required.amount,
  resource: url,
  description: offer.description,
  mimeType: "application/json",
  payTo: required.payTo,
  maxTimeoutSeconds: required.maxTimeoutSeconds,
  asset: required.asset,
  outputSchema: { input: { type: "http", method: "POST", discoverable } },
  extra: required.extra,
});

/** What a paid route declares about itself: its bazaar entry, and that it accepts payment identifiers. */
export function routeExtensions(route: PaidRoute): Record<string, unknown> {
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

/** Only an outline, because clients echo it back in a header. */
function outlineOf(output: PaidRoute["output"]): JsonSchema {
  const schema = output["application/json"];
  return schema ? outline(jsonSchema(schema, "output")) : {};
}

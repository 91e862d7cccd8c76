import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { bazaarResourceServerExtension, declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { type JsonSchema, jsonSchema, outline } from "../kernel/json-schema.ts";
import { NETWORKS } from "../kernel/networks.ts";
import { type Offer, type PaidRoute, schemesOf } from "../kernel/route.ts";
import { toBase64Json } from "./base64-json.ts";
import type { OfferReceipt } from "./offer-receipt.ts";
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
  /** What version 2 declares of the route besides the terms. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** Signs the terms, if the seller does. */
  readonly offerReceipt?: Pick<OfferReceipt, "offers">;
}

/** The 402 for an offer; `error` says why it is sent. */
export function challenge(
  offer: Offer,
  parts: ChallengeParts,
  { error, at }: { error: string; at: Date },
): PaymentChallenge {
  const { resource, description } = offer;
  const { schemes, extensions, offerReceipt } = parts;
  const url = `${parts.baseUrl}${resource}`;
  const accepts = schemes.map((scheme) => scheme.requirements(offer, at));
  const v2: PaymentRequired = {
    x402Version: 2,
    resource: { url, description, mimeType: "application/json" },
    accepts,
    ...(extensions || offerReceipt ? { extensions: { ...extensions, ...offerReceipt?.offers(url, accepts, at) } } : {}),
    error,
  };
  const v1 = accepts
    .filter((_, index) => schemes[index]?.versions.includes("v1"))
    .map((required) => asVersion1(required, { offer, url, discoverable: extensions !== undefined }));
  return {
    header: toBase64Json(v2),
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

interface Asked {
  readonly offer: Offer;
  readonly url: string;
  readonly discoverable: boolean;
}

const asVersion1 = (required: PaymentRequirements, { offer, url, discoverable }: Asked) => ({
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

/** The longest bazaar entry that leaves room for the rest of a payment in a header of 4 KB, in characters of JSON. */
const LONGEST_ENTRY = 1_300;

/**
 * What a paid route declares about itself: that it accepts payment identifiers, and its bazaar entry. Clients echo all
 * of it back in a header, so the identifiers' schema, which is optional, is left out.
 */
export function routeExtensions(route: PaidRoute): Record<string, unknown> {
  const { method, example, output } = route;
  const entry =
    schemesOf(route).length === 1
      ? bazaarEntry(route, { example: example.output, schema: outlineOf(output) })
      : // The terms and signed offers of several schemes fill the header.
        {
          info: { input: { type: "http", method, bodyType: "json", body: example.input } },
          schema: { type: "object" },
        };
  return { [BAZAAR]: entry, [PAYMENT_IDENTIFIER]: { info: { required: false } } };
}

const { key: BAZAAR, enrichDeclaration } = bazaarResourceServerExtension;

interface Described {
  readonly example: object;
  readonly schema: JsonSchema;
}

/** Of the answer's example, and then of its outline, as many members as there is room for. */
function bazaarEntry(route: PaidRoute, { example, schema }: Described): unknown {
  const { [BAZAAR]: declared } = declareDiscoveryExtension({
    bodyType: "json",
    input: route.example.input,
    inputSchema: outline(jsonSchema(route.body ?? route.input, "input")),
    output: { example, schema },
  });
  const entry = enrichDeclaration?.(declared, { method: route.method, adapter: null }) ?? declared;
  if (JSON.stringify(entry).length <= LONGEST_ENTRY || Array.isArray(example)) return entry;
  if (Object.keys(example).length > 0) return bazaarEntry(route, { example: shortened(example), schema });
  const { properties = {} } = schema as { readonly properties?: object };
  if (Object.keys(properties).length === 0) return entry;
  return bazaarEntry(route, { example, schema: { ...schema, properties: shortened(properties) } });
}

const shortened = (members: object): object => Object.fromEntries(Object.entries(members).slice(0, -1));

/** Only an outline: the whole schema is in the OpenAPI description. */
function outlineOf(output: PaidRoute["output"]): JsonSchema {
  const schema = output["application/json"];
  return schema ? outline(jsonSchema(schema, "output")) : {};
}

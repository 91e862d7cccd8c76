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

/**
 * The longest `PAYMENT-REQUIRED` that leaves room in a header of 4 KB for what a payment adds to the terms that it echoes. Of
 * several terms it echoes one, so it is shorter than the 402.
 */
const LONGEST = { ofOne: 3_620, ofSeveral: 4_090 } as const;

/**
 * What a paid route declares about itself: that it accepts payment identifiers, and its bazaar entry, as far as there is
 * room. Clients echo all of it back in a header, so the identifiers' schema, which is optional, is left out.
 * @param lengthWith of the route's `PAYMENT-REQUIRED` with these extensions; offers and URLs are longer at a longer host
 */
export function routeExtensions(
  route: PaidRoute,
  lengthWith: (extensions: Readonly<Record<string, unknown>>) => number,
): Readonly<Record<string, unknown>> {
  const identifiers = { [PAYMENT_IDENTIFIER]: { info: { required: false } } };
  const isOne = schemesOf(route).length === 1;
  for (const entry of isOne ? entriesOf(route) : [briefEntry(route)]) {
    const extensions = { [BAZAAR]: entry, ...identifiers };
    if (lengthWith(extensions) <= (isOne ? LONGEST.ofOne : LONGEST.ofSeveral)) return extensions;
  }
  return identifiers;
}

const { key: BAZAAR, enrichDeclaration } = bazaarResourceServerExtension;

/** The terms and signed offers of several schemes fill the header. */
const briefEntry = ({ method, example }: PaidRoute) => ({
  info: { input: { type: "http", method, bodyType: "json", body: example.input } },
  schema: { type: "object" },
});

/** A route's bazaar entries, each with less of the answer's example, and then of its outline, than the one before. */
function* entriesOf(route: PaidRoute): Generator<unknown> {
  let example = route.example.output as object;
  let schema = outlineOf(route.output);
  for (;;) {
    yield entryOf(route, example, schema);
    const { properties = {} } = schema as { readonly properties?: object };
    if (Array.isArray(example)) return;
    if (Object.keys(example).length > 0) example = shortened(example);
    else if (Object.keys(properties).length > 0)
      schema = { ...schema, properties: shortened(properties) } as JsonSchema;
    else return;
  }
}

function entryOf(route: PaidRoute, example: object, schema: JsonSchema): unknown {
  const { [BAZAAR]: declared } = declareDiscoveryExtension({
    bodyType: "json",
    input: route.example.input,
    inputSchema: outline(jsonSchema(route.body ?? route.input, "input")),
    output: { example, schema },
  });
  return enrichDeclaration?.(declared, { method: route.method, adapter: null }) ?? declared;
}

const shortened = (members: object): object => Object.fromEntries(Object.entries(members).slice(0, -1));

/** Only an outline: the whole schema is in the OpenAPI description. */
function outlineOf(output: PaidRoute["output"]): JsonSchema {
  const schema = output["application/json"];
  return schema ? outline(jsonSchema(schema, "output")) : {};
}

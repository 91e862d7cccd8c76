import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { bazaarResourceServerExtension, declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { type JsonSchema, jsonSchema, outline } from "../platform/http/json-schema.ts";
import type { Offer, PaidRoute } from "../platform/http/route.ts";
import { NETWORKS } from "../platform/networks.ts";
import { toBase64Json } from "./header.ts";
import type { OfferReceipt } from "./receipt.ts";
import type { Diagnostic } from "./schemas.ts";
import { type Extensions, resourceOf, type SchemeRules } from "./scheme.ts";

/** A 402 for both protocol versions: version 2 in the header, version 1 in the body. */
export interface PaymentChallenge {
  readonly header: string;
  readonly body: string;
  /** Whether the header contains the route's bazaar entry. */
  readonly isListed: boolean;
  /** Whether the header contains the signed offers; otherwise the body does. */
  readonly isSigned: boolean;
}

export interface ChallengeParts {
  /** The schemes a client may pay with, preferred first. */
  readonly schemes: readonly SchemeRules[];
  readonly baseUrl: string;
  /** The route's version 2 extensions, in addition to the terms. */
  readonly extensions?: Extensions;
  /** Signs the terms; absent if offers are not signed. */
  readonly offerReceipt?: Pick<OfferReceipt, "offers">;
}

/** Why the 402 is sent. */
export interface Reasons {
  readonly error: string;
  /** For machines; absent if nothing was wrong. */
  readonly diagnostic?: Diagnostic | undefined;
}

/** One offer for each network. */
export type Offers = readonly [Offer, ...Offer[]];

/** Returns the 402 for offers that differ only in their network. */
export async function challenge(
  offers: Offers,
  parts: ChallengeParts,
  { error, diagnostic, at }: Reasons & { readonly at: Date },
): Promise<PaymentChallenge> {
  const { schemes, extensions, offerReceipt } = parts;
  const [{ resource: path, description }] = offers;
  const resource = resourceOf(parts.baseUrl, { path, description });
  const { url } = resource;
  const offered = offers.flatMap((offer) =>
    schemes.map((scheme) => ({ offer, scheme, required: scheme.requirements(offer, at) })),
  );
  const accepts = offered.map(({ required }) => required);
  const terms = { x402Version: 2, resource, accepts } as const;
  const signed = (await offerReceipt?.offers(url, accepts, at)) ?? {};
  const { header, isSigned, isListed } = fitting({ ...terms, error, diagnostic }, extensions ?? {}, signed);
  const inBody = { ...(isSigned ? {} : signed), ...(diagnostic && { diagnostic }) };
  const v1 = offered
    .filter(({ scheme }) => scheme.versions.includes("v1"))
    .map(({ required, offer }) => asVersion1(required, { offer, url, discoverable: extensions !== undefined }));
  return {
    header,
    isListed,
    isSigned,
    body: JSON.stringify({
      x402Version: 1,
      error: v1.length > 0 ? error : `${error} ${onlyVersion2(schemes)}`,
      accepts: v1,
      ...(Object.keys(inBody).length === 0 ? {} : { extensions: inBody }),
    }),
  };
}

/**
 * The maximum length of `PAYMENT-REQUIRED`, in characters. nginx reads all headers of a response into 4 KB; our other
 * headers take about 600 bytes. The rest is room for the fields that a payment adds to the terms it echoes.
 */
const LONGEST = 3_200;
/** An error of this many characters fits with any terms. */
const SHORT_ERROR = 100;

type Terms = Omit<PaymentRequired, "extensions" | "error"> & Reasons;

/**
 * Fits as much as possible into the header. The terms and the diagnostic's code always fit. After a refusal, the signed
 * offers come next, because the client may pay one of them; otherwise the route's extensions do, because discovery
 * depends on them. The body has the offers, the field errors, and the full text of a truncated error.
 */
function fitting({ error, diagnostic, ...terms }: Terms, declared: Extensions, signed: Extensions) {
  const { errors, ...code } = diagnostic ?? {};
  const { [BAZAAR]: _, ...unlisted } = declared;
  const isPaymentRefused = diagnostic !== undefined && errors === undefined;
  const [whole, brief] = diagnostic === undefined ? [{}, {}] : [{ diagnostic }, { diagnostic: code }];
  const reasons = [
    { said: whole, error },
    { said: brief, error },
  ];
  const short = { said: brief, error: `${error.slice(0, SHORT_ERROR)}…` };
  const contents = [
    ...reasons.map((why) => ({ ...why, extensions: { ...declared, ...signed } })),
    ...(isPaymentRefused ? reasons.map((why) => ({ ...why, extensions: { ...unlisted, ...signed } })) : []),
    ...[...reasons, short].map((why) => ({ ...why, extensions: declared })),
  ];
  const write = ({ said, error, extensions }: (typeof contents)[number]) => ({
    header: toBase64Json({ ...terms, extensions: { ...extensions, ...said }, error }),
    isSigned: Object.keys(signed).every((name) => name in extensions),
    isListed: BAZAAR in extensions,
  });
  for (const content of contents) {
    const written = write(content);
    if (written.header.length <= LONGEST) return written;
  }
  return write({ ...short, extensions: {} });
}

/** The body's error for version 1 clients, which find no terms there to sign. */
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

/** A truncated reason, which leaves as little room as any reason can. */
const LONGEST_REASON: Reasons = {
  error: "-".repeat(SHORT_ERROR),
  diagnostic: {
    code: "invalid_exact_evm_payload_authorization_value_mismatch",
    retry: "never",
    after: 3_600,
    errors: [],
  },
};

/**
 * Returns a paid route's extensions: support for payment identifiers, and the longest bazaar entry that fits, together
 * with the signed offers if any entry leaves room for them. Clients echo all of it in a header, so the identifiers'
 * optional schema is omitted.
 * @param tryOut builds the route's 402 with these extensions, for the given reasons or none; offers and URLs are longer
 * on a longer host
 */
export async function routeExtensions(
  route: PaidRoute,
  tryOut: (extensions: Extensions, reasons?: Reasons) => Promise<Pick<PaymentChallenge, "isListed" | "isSigned">>,
): Promise<Extensions> {
  const identifiers = { [PAYMENT_IDENTIFIER]: { info: { required: false } } };
  let listed: Extensions | null = null;
  for (const entry of entriesOf(route)) {
    const extensions = { [BAZAAR]: entry, ...identifiers };
    const { isListed, isSigned } = await tryOut(extensions);
    if (isListed && isSigned) return extensions;
    if (listed === null && (await tryOut(extensions, LONGEST_REASON)).isListed) listed = extensions;
  }
  return listed ?? identifiers;
}

const { key: BAZAAR, enrichDeclaration } = bazaarResourceServerExtension;

/** A route's bazaar entries, from longest to shortest. */
function* entriesOf(route: PaidRoute): Generator<unknown> {
  yield* outlinedEntries(route);
  yield briefEntry(route, { output: { type: "json", example: route.example.output } });
  yield briefEntry(route, { output: { type: "json", example: {} } });
  yield briefEntry(route);
}

/** The entry for a header that terms in several schemes nearly fill. */
const briefEntry = ({ method, example }: PaidRoute, output: object = {}) => ({
  info: { input: { type: "http", method, bodyType: "json", body: example.input }, ...output },
  schema: BRIEF_SCHEMA,
});

/** JSON Schema as the bazaar demands it, without the parts that are in the OpenAPI description. */
const BRIEF_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  properties: { input: { properties: { type: { const: "http" }, method: { const: "POST" } } } },
  required: ["input"],
};

/** Shortens the example step by step, then the outline. */
function* outlinedEntries(route: PaidRoute): Generator<unknown> {
  let example: object | null = route.example.output as object;
  let schema: JsonSchema | null = outlineOf(route.output);
  for (let last = example; schema !== null; ) {
    yield entryOf(route, last, schema);
    if (example !== null) example = shorterExample(example);
    if (example === null) schema = shorterOutline(schema);
    else last = example;
  }
}

/** Drops one member of an object, or shortens a list's first item. Null if nothing is left to cut. */
function shorterExample(example: object): object | null {
  if (!Array.isArray(example)) return shortened(example);
  const [first = {}] = example as readonly object[];
  return example.length === 0 ? null : [shortened(first)].filter((one) => one !== null);
}

function shorterOutline(schema: JsonSchema): JsonSchema | null {
  const { properties, items } = schema as { readonly properties?: object; readonly items?: JsonSchema };
  const fewer = properties && shortened(properties);
  if (fewer) return { ...schema, properties: fewer } as JsonSchema;
  const shorter = items && shorterOutline(items);
  return shorter ? ({ ...schema, items: shorter } as JsonSchema) : null;
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

/** Returns the object without its last member; null if it has none. */
function shortened(members: object): object | null {
  const entries = Object.entries(members);
  return entries.length === 0 ? null : Object.fromEntries(entries.slice(0, -1));
}

/** Reduces the schema to an outline; OpenAPI has all of it. */
function outlineOf(output: PaidRoute["output"]): JsonSchema {
  const schema = output["application/json"];
  return schema ? outline(jsonSchema(schema, "output")) : {};
}

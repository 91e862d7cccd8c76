import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { bazaarResourceServerExtension, declareDiscoveryExtension } from "@x402/extensions/bazaar";
import { PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { type JsonSchema, jsonSchema, outline } from "../platform/http/json-schema.ts";
import type { Offer, PaidRoute } from "../platform/http/route.ts";
import { NETWORKS } from "../platform/networks.ts";
import { toBase64Json } from "./header.ts";
import type { OfferReceipt } from "./receipt.ts";
import type { Diagnostic } from "./refusal.ts";
import { type Extensions, resourceOf, type SchemeRules } from "./scheme.ts";

/** One 402 for both protocol versions: version 2 in the header, version 1 in the body. */
export interface PaymentChallenge {
  readonly header: string;
  readonly body: string;
  /** Whether the header has the route's entry for the bazaar. */
  readonly isListed: boolean;
  /** Whether it has the signed offers; if not, the body has them. */
  readonly isSigned: boolean;
}

export interface ChallengeParts {
  /** The schemes a client may pay with, preferred first. */
  readonly schemes: readonly SchemeRules[];
  readonly baseUrl: string;
  /** What version 2 declares of the route in addition to the terms. */
  readonly extensions?: Extensions;
  /** Signs the terms, if the seller does. */
  readonly offerReceipt?: Pick<OfferReceipt, "offers">;
}

/** Why a 402 is sent. */
export interface Reasons {
  readonly error: string;
  /** For machines; absent where nothing was wrong. */
  readonly diagnostic?: Diagnostic | undefined;
}

/** One offer for each network. */
export type Offers = readonly [Offer, ...Offer[]];

/** The 402 for offers that differ in their network alone. */
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
 * The longest `PAYMENT-REQUIRED`, in characters. nginx reads all headers of an answer into 4 KB; the others of ours take about
 * 600 bytes. It also leaves room for what a payment adds to the terms that it echoes.
 */
const LONGEST = 3_200;
/** The characters of an error that fit with any terms. */
const SHORT_ERROR = 100;

type Terms = Omit<PaymentRequired, "extensions" | "error"> & Reasons;

/**
 * As much as fits in the header: the terms and the diagnostic's code always. Where a payment was refused, then the signed
 * offers, which its client may pay next; else what the route declares, without which nothing lists it. The body has the
 * offers, the errors, and all of an error that is cut short.
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

/** A reason that leaves as little room as any, cut short. */
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
 * What a paid route declares about itself: that it accepts payment identifiers, and the longest bazaar entry that fits, with
 * the signed offers if any does. Clients echo all of it back in a header, so the identifiers' schema, which is optional, is
 * left out.
 * @param tryOut the route's 402 with these, for the reasons given or for none; offers and URLs are longer at a longer host
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

/** A route's bazaar entries, each shorter than the one before. */
function* entriesOf(route: PaidRoute): Generator<unknown> {
  yield* outlinedEntries(route);
  yield briefEntry(route, { output: { type: "json", example: route.example.output } });
  yield briefEntry(route, { output: { type: "json", example: {} } });
  yield briefEntry(route);
}

/** Where the terms, of several schemes for one, fill the header. */
const briefEntry = ({ method, example }: PaidRoute, output: object = {}) => ({
  info: { input: { type: "http", method, bodyType: "json", body: example.input }, ...output },
  schema: BRIEF_SCHEMA,
});

/** JSON Schema as the bazaar demands it, without what OpenAPI says anyway. */
const BRIEF_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  properties: { input: { properties: { type: { const: "http" }, method: { const: "POST" } } } },
  required: ["input"],
};

/** Each with less of the answer's example, and then of its outline, than the one before. */
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

/** Of a list, its first item is made shorter. Null if nothing is left to cut. */
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

/** Without its last member; null if it has none. */
function shortened(members: object): object | null {
  const entries = Object.entries(members);
  return entries.length === 0 ? null : Object.fromEntries(entries.slice(0, -1));
}

/** Only an outline: the whole schema is in the OpenAPI description. */
function outlineOf(output: PaidRoute["output"]): JsonSchema {
  const schema = output["application/json"];
  return schema ? outline(jsonSchema(schema, "output")) : {};
}

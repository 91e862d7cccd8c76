import { createHash } from "node:crypto";
import { isValidPaymentId, PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import canonicalize from "canonicalize";
import { z } from "zod";
import { type Envelope, type PaymentHeaders, readEnvelopes } from "../../packages/escrow/src/envelope.ts";
import { parseJson } from "../platform/http/request.ts";
import type { ClaimedTerms, Extensions, PresentedPayment, ProtocolVersion, SchemeRules } from "./scheme.ts";

/** The largest payment header, with room for an ERC-1271 signature of 2 KiB and echoed extensions. */
export const MAX_HEADER_BYTES = 12_288;

type Malformed = { readonly malformed: string };

const IDENTIFIED = z.object({
  extensions: z.object({ [PAYMENT_IDENTIFIER]: z.object({ info: z.object({ id: z.unknown() }) }) }),
});
const text = z.string().max(200).optional().catch(undefined);
const V2 = z.object({
  x402Version: z.literal(2),
  accepted: z
    .object({ scheme: text, network: text, asset: text, payTo: text, amount: text, extra: z.unknown().optional() })
    .optional(),
  payload: z.unknown(),
});
const V1 = z.object({ x402Version: z.literal(1), scheme: text, network: text, payload: z.unknown() });

const VERSIONS = { 1: "v1", 2: "v2" } as const satisfies Record<Envelope["version"], ProtocolVersion>;

/**
 * Parses the payment of a request from `PAYMENT-SIGNATURE` or `X-PAYMENT`, in the version that its envelope names.
 * `malformed` explains what is wrong with it. The scheme that the client names parses the payload. If it names none, or
 * one that is not offered here, the first scheme does, and its checks then tell the client which schemes are offered.
 */
export function parsePaymentHeaders(
  headers: PaymentHeaders,
  schemes: readonly [SchemeRules, ...SchemeRules[]],
): PresentedPayment | Malformed | null {
  const envelopes = readEnvelopes(headers, MAX_HEADER_BYTES);
  if (envelopes === null || "malformed" in envelopes) return envelopes;
  const [{ header, members, version: number }] = envelopes;
  const version = VERSIONS[number];
  const opened = version === "v2" ? openV2(members) : openV1(members);
  const named = "claimed" in opened ? opened.claimed.scheme : undefined;
  const scheme = schemes.find(({ id }) => id === named) ?? schemes[0];
  const no = (why: string): Malformed => ({ malformed: `${header} is not an x402 "${scheme.id}" payment: ${why}.` });
  if ("malformed" in opened) return no(opened.malformed);
  if (!scheme.versions.includes(version)) return no("that scheme requires x402 version 2, in PAYMENT-SIGNATURE");
  const payload = scheme.parse(opened.payload, opened.claimed);
  if ("malformed" in payload) return no(payload.malformed);
  const identifier = identifierIn(envelopes);
  if (typeof identifier === "object" && identifier !== null) return identifier;
  const { claimed } = opened;
  return { scheme: scheme.id, version, ...payload, paymentId: identifier, claimed, extensions: extensionsIn(members) };
}

interface Opened {
  readonly payload: unknown;
  readonly claimed: ClaimedTerms;
}

const extensionsIn = ({ extensions, x402Version }: Envelope["members"]): Extensions | undefined =>
  x402Version === 2 && typeof extensions === "object" && extensions !== null && !Array.isArray(extensions)
    ? (extensions as Extensions)
    : undefined;

function openV2(decoded: unknown): Opened | Malformed {
  const { success, data, error } = V2.safeParse(decoded);
  return success ? { payload: data.payload, claimed: data.accepted ?? {} } : explain(error);
}

function openV1(decoded: unknown): Opened | Malformed {
  const { success, data, error } = V1.safeParse(decoded);
  if (!success) return explain(error);
  const { scheme, network, payload } = data;
  return { payload, claimed: { scheme, network } };
}

/** Returns the payment identifier, which may be in either of the two headers; null if there is none. */
function identifierIn(envelopes: readonly Envelope[]): string | Malformed | null {
  const found = envelopes.map(({ members }) => identifierOf(members));
  const malformed = found.find((one) => typeof one === "object" && one !== null);
  if (malformed !== undefined) return malformed;
  const [first = null, ...others] = new Set(found.filter((one) => one !== null));
  return others.length === 0
    ? first
    : { malformed: "PAYMENT-SIGNATURE and X-PAYMENT contain different payment identifiers; send only one of them." };
}

/** Checks the identifier here, because the library's own validation compiles a schema sent by the client. */
function identifierOf(members: Envelope["members"]): string | Malformed | null {
  const id = IDENTIFIED.safeParse(members).data?.extensions[PAYMENT_IDENTIFIER].info.id ?? null;
  // An identifier of the wrong type must not be dropped: the client relies on it to be charged only once.
  return id === null || (typeof id === "string" && isValidPaymentId(id))
    ? id
    : { malformed: "The payment identifier must be 16 to 128 letters, digits, hyphens, or underscores." };
}

function explain({ issues: [issue] }: z.ZodError): Malformed {
  return { malformed: `${issue?.path.join(".") || "payload"}: ${issue?.message ?? "unexpected"}` };
}

/** Encodes a value for x402's headers: JSON in UTF-8, then padded base64. */
export const toBase64Json = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** Deeper than any request needs; the journal's database gives up at a few thousand levels. */
const MAX_DEPTH = 64;

/** Whether the journal can store a JSON value unchanged: PostgreSQL's jsonb rejects U+0000 and lone surrogates. */
export function isStorable(value: unknown, depth = 0): boolean {
  if (typeof value === "string") return isText(value);
  if (typeof value !== "object" || value === null) return true;
  return (
    depth < MAX_DEPTH && Object.entries(value).every(([name, inner]) => isText(name) && isStorable(inner, depth + 1))
  );
}

const isText = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000");

/** The length of a SHA-256 digest in base64url. */
const STORED_LENGTH = 43;

/**
 * Returns a payment identifier as the journal stores it. Identifiers are only ever compared, and every refused payment
 * leaves one, so a digest is enough for a long one.
 */
export const storedIdentifier = (id: string | null): string | null =>
  id === null || id.length <= STORED_LENGTH ? id : createHash("sha256").update(id).digest("base64url");

export interface RequestShape {
  readonly method: string;
  readonly route: string;
  readonly query: URLSearchParams;
  readonly body: Uint8Array;
}

/**
 * SHA-256 over method, route, sorted query and the body's JCS form (RFC 8785); a body that is not JSON counts as raw
 * bytes.
 */
export function fingerprint({ method, route, query, body }: RequestShape): Buffer {
  const pairs = [...query].map(([name, value]) => JSON.stringify([name, value])).sort();
  return createHash("sha256")
    .update(`${method}\n${route}\n${pairs.join("&")}\n`)
    .update(bodyDigest(body))
    .digest();
}

function bodyDigest(body: Uint8Array): Buffer {
  const hash = createHash("sha256");
  const parsed = bodyJson(body);
  const canonical = parsed === undefined ? undefined : tryCanonicalize(parsed);
  return canonical === undefined
    ? hash.update("bytes:").update(body).digest()
    : hash.update("json:").update(canonical).digest();
}

/** Returns the JSON value of a body, null if there is no body, or undefined if the bytes are not JSON. */
export const bodyJson = (body: Uint8Array): unknown => (body.length === 0 ? null : parseJson(body));

function tryCanonicalize(value: unknown): string | undefined {
  try {
    return canonicalize(value);
  } catch {
    return undefined;
  }
}

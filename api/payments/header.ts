import { extractPaymentIdentifier, isValidPaymentId, PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { z } from "zod";
import { fromBase64Json } from "./base64-json.ts";
import type { ClaimedTerms, PresentedPayment, ProtocolVersion, SchemeRules } from "./scheme.ts";

/** The largest payment header, with room for an ERC-1271 signature of 2 KiB and echoed extensions. */
export const MAX_HEADER_BYTES = 12_288;

type Malformed = { readonly malformed: string };

const NAMES_AN_ID = z.object({
  extensions: z.object({
    [PAYMENT_IDENTIFIER]: z.object({ info: z.object({ id: z.unknown().refine((id) => (id ?? null) !== null) }) }),
  }),
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

const HEADERS = { v1: "X-PAYMENT", v2: "PAYMENT-SIGNATURE" } as const satisfies Record<ProtocolVersion, string>;

/** The payment headers of a request. */
export type PaymentHeaders = Readonly<Record<ProtocolVersion, string | undefined>>;

/**
 * Decodes `PAYMENT-SIGNATURE` (v2) or `X-PAYMENT` (v1); `malformed` says what is wrong with it. The scheme the client
 * names reads the payload. If it names none, or one not offered here, the first scheme reads it, and its checks then
 * tell the client what is offered.
 */
export function parsePaymentHeaders(
  headers: PaymentHeaders,
  schemes: readonly [SchemeRules, ...SchemeRules[]],
): PresentedPayment | Malformed | null {
  const { v1, v2 } = headers;
  if (v2 === undefined && v1 === undefined) return null;
  if (v2 !== undefined && v1 !== undefined && v2 !== v1) {
    return { malformed: "PAYMENT-SIGNATURE and X-PAYMENT contain different payments; send only one of them." };
  }
  const version = v2 !== undefined ? "v2" : "v1";
  const name = HEADERS[version];
  const header = v2 ?? v1 ?? "";
  if (header.length > MAX_HEADER_BYTES) {
    return { malformed: `${name} has ${header.length} bytes; the limit is ${MAX_HEADER_BYTES}.` };
  }
  let decoded: unknown;
  try {
    decoded = fromBase64Json(header);
  } catch {
    return { malformed: `${name} is not base64-encoded JSON of an x402 payment payload.` };
  }
  const envelope = version === "v2" ? openV2(decoded) : openV1(decoded);
  const claimed = "claimed" in envelope ? envelope.claimed.scheme : undefined;
  const scheme = schemes.find(({ id }) => id === claimed) ?? schemes[0];
  const no = (why: string): Malformed => ({ malformed: `${name} is not an x402 "${scheme.id}" payment: ${why}.` });
  if ("malformed" in envelope) return no(envelope.malformed);
  if (!scheme.versions.includes(version)) return no(`that scheme requires x402 version 2, in ${HEADERS.v2}`);
  const payload = scheme.parse(envelope.payload, envelope.claimed);
  if ("malformed" in payload) return no(payload.malformed);
  return identified(decoded, { scheme: scheme.id, version, ...payload, claimed: envelope.claimed });
}

interface Envelope {
  readonly payload: unknown;
  readonly claimed: ClaimedTerms;
}

function openV2(decoded: unknown): Envelope | Malformed {
  const { success, data, error } = V2.safeParse(decoded);
  return success ? { payload: data.payload, claimed: data.accepted ?? {} } : explain(error);
}

function openV1(decoded: unknown): Envelope | Malformed {
  const { success, data, error } = V1.safeParse(decoded);
  if (!success) return explain(error);
  const { scheme, network, payload } = data;
  return { payload, claimed: { scheme, network } };
}

/** Extraction only: the library's validating variants compile a schema sent by the client. */
function identified(
  decoded: unknown,
  payment: Omit<PresentedPayment, "paymentId">,
): PresentedPayment | { readonly malformed: string } {
  const payload = decoded as Parameters<typeof extractPaymentIdentifier>[0];
  const paymentId = extractPaymentIdentifier(payload, false);
  // An identifier of the wrong type must not be dropped: the client relies on it to be charged only once.
  if (paymentId === null ? NAMES_AN_ID.safeParse(decoded).success : !isValidPaymentId(paymentId)) {
    return { malformed: "The payment identifier must be 16 to 128 letters, digits, hyphens, or underscores." };
  }
  return { ...payment, paymentId };
}

function explain({ issues: [issue] }: z.ZodError): Malformed {
  return { malformed: `${issue?.path.join(".") || "payload"}: ${issue?.message ?? "unexpected"}` };
}

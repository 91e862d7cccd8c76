import { decodePaymentSignatureHeader } from "@x402/core/http";
import { extractPaymentIdentifier, isValidPaymentId, PAYMENT_IDENTIFIER } from "@x402/extensions/payment-identifier";
import { z } from "zod";
import { type Address, type Hex, parseAddress } from "../kernel/wallet.ts";
import type { Authorization } from "./exact/authorization.ts";

export type ProtocolVersion = "v1" | "v2";

/** A payment as its header carries it; nothing in it has been verified yet. */
export interface PresentedPayment {
  readonly version: ProtocolVersion;
  readonly authorization: Authorization;
  readonly signature: Hex;
  readonly paymentId: string | null;
  /** The terms that the client says it accepted; fields that it left out are undefined. */
  readonly claimed: ClaimedTerms;
}

export interface ClaimedTerms {
  readonly scheme?: string | undefined;
  readonly network?: string | undefined;
  readonly asset?: string | undefined;
  readonly payTo?: string | undefined;
  readonly amount?: string | undefined;
}

/** The largest payment header: an ERC-1271 signature of 2 KiB fits, and so do echoed extensions. */
export const MAX_HEADER_BYTES = 12_288;

const integer = z
  .union([z.string().regex(/^\d{1,78}$/), z.number().int().nonnegative().refine(Number.isSafeInteger)])
  .transform((value) => BigInt(value))
  .refine((value) => value < 2n ** 256n);
const address = z.string().transform((text, context): Address => {
  const parsed = parseAddress(text);
  if (parsed === null) context.addIssue({ code: "custom", message: "expected an address: 0x and 40 hex digits" });
  return parsed ?? "0x";
});
const hex = (pattern: RegExp, expected: string) =>
  z
    .string()
    .regex(pattern, expected)
    .transform((text) => text.toLowerCase() as Hex);

const PAYLOAD = z.object({
  signature: hex(/^0x([0-9a-f]{2}){1,4096}$/i, "expected hex bytes"),
  authorization: z.object({
    from: address,
    to: address,
    value: integer,
    validAfter: integer,
    validBefore: integer,
    nonce: hex(/^0x[0-9a-f]{64}$/i, "expected 32 bytes in hex"),
  }),
});
const NAMES_AN_ID = z.object({
  extensions: z.object({
    [PAYMENT_IDENTIFIER]: z.object({ info: z.object({ id: z.unknown().refine((id) => (id ?? null) !== null) }) }),
  }),
});
const text = z.string().max(200).optional().catch(undefined);
const V2 = z.object({
  x402Version: z.literal(2),
  accepted: z.object({ scheme: text, network: text, asset: text, payTo: text, amount: text }).optional(),
  payload: PAYLOAD,
});
const V1 = z.object({ x402Version: z.literal(1), scheme: text, network: text, payload: PAYLOAD });

/** Decodes `PAYMENT-SIGNATURE` (v2) or `X-PAYMENT` (v1); `malformed` says what is wrong with it. */
export function parsePaymentHeaders(
  v2: string | undefined,
  v1: string | undefined,
): PresentedPayment | { readonly malformed: string } | null {
  if (v2 === undefined && v1 === undefined) return null;
  if (v2 !== undefined && v1 !== undefined && v2 !== v1) {
    return { malformed: "PAYMENT-SIGNATURE and X-PAYMENT carry different payments; send one of them." };
  }
  const name = v2 !== undefined ? "PAYMENT-SIGNATURE" : "X-PAYMENT";
  const header = v2 ?? v1 ?? "";
  if (header.length > MAX_HEADER_BYTES) {
    return { malformed: `${name} has ${header.length} bytes; at most ${MAX_HEADER_BYTES} are accepted.` };
  }
  let decoded: unknown;
  try {
    decoded = decodePaymentSignatureHeader(header);
  } catch {
    return { malformed: `${name} is not base64-encoded JSON of an x402 payment payload.` };
  }
  return v2 !== undefined ? parseV2(decoded) : parseV1(decoded);
}

function parseV2(decoded: unknown): PresentedPayment | { readonly malformed: string } {
  const parsed = V2.safeParse(decoded);
  if (!parsed.success) return { malformed: explain("PAYMENT-SIGNATURE", parsed.error) };
  const { accepted, payload } = parsed.data;
  return identified(decoded, { version: "v2", ...payload, claimed: accepted ?? {} });
}

function parseV1(decoded: unknown): PresentedPayment | { readonly malformed: string } {
  const parsed = V1.safeParse(decoded);
  if (!parsed.success) return { malformed: explain("X-PAYMENT", parsed.error) };
  const { scheme, network, payload } = parsed.data;
  return identified(decoded, { version: "v1", ...payload, claimed: { scheme, network } });
}

/** Only extraction: the validating variants of the library compile a schema that the client sent. */
function identified(
  decoded: unknown,
  payment: Omit<PresentedPayment, "paymentId">,
): PresentedPayment | { readonly malformed: string } {
  const payload = decoded as Parameters<typeof extractPaymentIdentifier>[0];
  const paymentId = extractPaymentIdentifier(payload, false);
  // An identifier of another type must not be dropped: the client relies on it to be charged once.
  if (paymentId === null ? NAMES_AN_ID.safeParse(decoded).success : !isValidPaymentId(paymentId)) {
    return { malformed: "The payment identifier must have 16 to 128 letters, digits, hyphens or underscores." };
  }
  return { ...payment, paymentId };
}

function explain(name: string, error: z.ZodError): string {
  const issue = error.issues[0];
  return `${name} is not an x402 "exact" payment: ${issue?.path.join(".") || "payload"}: ${issue?.message ?? "unexpected"}.`;
}

import { decodeBytes } from "../../escrow/src/bytes.ts";
import { canonical } from "../../escrow/src/canonical.ts";

/** A payment as in a request, decoded and not verified. */
export interface SentPayment {
  /** The same for every header with this authorization and signature. */
  readonly id: string;
  /** The same for every header with the same content, in any spelling. */
  readonly digest: string;
  /** The resource that the payment names, if any. */
  readonly resource: unknown;
}

/** Parses `PAYMENT-SIGNATURE` or `X-PAYMENT`; null for an invalid payment, which the middleware refuses. */
export async function readPayment(header: string): Promise<SentPayment | null> {
  const decoded = decode(header);
  if (!isRecord(decoded) || !isRecord(decoded.payload)) return null;
  const [id, digest] = await Promise.all([sha256(canonical(decoded.payload)), sha256(canonical(decoded))]);
  return { id, digest, resource: isRecord(decoded.resource) ? decoded.resource.url : decoded.resource };
}

/** Returns whether a response reports that its payment has settled: no other may be stored. */
export function isSettled(status: number, header: string | null): boolean {
  if (status < 200 || status >= 400 || header === null) return false;
  const decoded = decode(header);
  return isRecord(decoded) && decoded.success === true;
}

/** Returns the SHA-256 in hex. */
export async function sha256(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function decode(header: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(decodeBytes(header))) as unknown;
  } catch {
    return null;
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

import { base64url } from "jose";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/;

/** Returns base64 (RFC 4648, section 4), with padding. */
export function toBase64(bytes: Uint8Array): string {
  const text = base64url.encode(bytes).replace(/-/g, "+").replace(/_/g, "/");
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}

/** Returns the bytes, or null: other encodings of the same bytes are refused, so that each value has one text. */
export const fromBase64 = (text: string): Uint8Array | null =>
  BASE64.test(text) ? base64url.decode(text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")) : null;

/** Returns the parts in one array. */
export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

import { hexToBytes } from "@noble/hashes/utils.js";
import { base64url } from "jose";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Returns the bytes of base58btc text, or null if the text is invalid or does not decode to `length` bytes. */
export function base58(text: string, length: number): Uint8Array<ArrayBuffer> | null {
  // A byte takes at most 1.37 digits, so longer text is rejected before any arithmetic.
  if (text.length > length * 1.4 + 1) return null;
  let value = 0n;
  for (const char of text) {
    const digit = ALPHABET.indexOf(char);
    if (digit === -1) return null;
    value = value * 58n + BigInt(digit);
  }
  const hex = (value === 0n ? "" : value.toString(16)).padStart(2 * length, "0");
  if (hex.length > 2 * length) return null;
  const bytes = Uint8Array.from(hexToBytes(hex));
  // Each leading zero byte is written as a 1.
  const ones = /^1*/.exec(text)?.[0].length ?? 0;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return ones === (zeros === -1 ? length : zeros) ? bytes : null;
}

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

import { hexToBytes } from "@noble/hashes/utils.js";

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

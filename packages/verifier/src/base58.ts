const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** The number of digits processed per step: a byte times 58³ is a small number. */
const CHUNK = 3;

/** Returns the bytes of base58btc text, or null if the text is invalid or does not decode to `length` bytes. */
export function base58(text: string, length: number): Uint8Array<ArrayBuffer> | null {
  // A byte takes at most 1.37 digits, so longer text is rejected before any arithmetic.
  if (text.length > length * 1.4 + 1) return null;
  const bytes = new Uint8Array(length);
  // The index of the first nonzero byte.
  let first = length;
  for (let start = 0; start < text.length; start += CHUNK) {
    let carry = 0;
    let base = 1;
    for (const char of text.slice(start, start + CHUNK)) {
      const digit = ALPHABET.indexOf(char);
      if (digit === -1) return null;
      carry = carry * 58 + digit;
      base *= 58;
    }
    let at = length - 1;
    for (; at >= first || carry > 0; at--) {
      if (at < 0) return null;
      carry += (bytes[at] ?? 0) * base;
      bytes[at] = carry & 0xff;
      carry >>= 8;
    }
    first = at + 1;
  }
  // Each leading zero byte is written as a 1.
  const ones = /^1*/.exec(text)?.[0].length ?? 0;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return ones === (zeros === -1 ? length : zeros) ? bytes : null;
}

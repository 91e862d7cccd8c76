const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** As many digits as fit a safe integer: large numbers are multiplied seldom. */
const CHUNK = 9;

/** The bytes of base58btc text, or null when it is none or would not be `length` bytes. */
export function base58(text: string, length: number): Uint8Array<ArrayBuffer> | null {
  // A byte takes at most 1.37 digits: longer text is not worth the arithmetic.
  if (text.length > length * 1.4 + 1) return null;
  let number = 0n;
  for (let at = 0; at < text.length; at += CHUNK) {
    const digits = text.slice(at, at + CHUNK);
    let chunk = 0;
    for (const char of digits) {
      const digit = ALPHABET.indexOf(char);
      if (digit === -1) return null;
      chunk = chunk * 58 + digit;
    }
    number = number * BigInt(58 ** digits.length) + BigInt(chunk);
  }
  const zeros = /^1*/.exec(text)?.[0].length ?? 0;
  const hex = number === 0n ? "" : number.toString(16);
  if (zeros + Math.ceil(hex.length / 2) !== length) return null;
  const padded = hex.padStart(length * 2, "0");
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = Number.parseInt(padded.slice(at * 2, at * 2 + 2), 16);
  return bytes;
}

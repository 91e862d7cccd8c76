import { z } from "zod";

const P = 2n ** 255n - 19n;
/** The curve's constant: -121665/121666 (RFC 8032, section 5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

const JWK = z.object({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: z.string() });

export interface RetiredKeys {
  /** The `x` of every key, in the given order. */
  readonly keys: readonly string[];
  /** One sentence for each value that is not a public key; it never repeats the value. */
  readonly problems: readonly string[];
}

/**
 * Public keys that signed in the past: comma-separated `x` values or whole public JWKs. A private key looks like an `x`
 * value and would be published, so a JWK with `d` and any text that is not a point of the curve (half of all private
 * keys) are rejected.
 */
export function parseRetiredKeys(text: string): RetiredKeys {
  const values = text.split(/,(?![^{}]*\})/).map((value) => value.trim());
  const parsed = values.map((value, index) => parseKey(value, `value ${index + 1}`));
  return {
    keys: parsed.flatMap((key) => ("x" in key ? [key.x] : [])),
    problems: parsed.flatMap((key) => ("problem" in key ? [key.problem] : [])),
  };
}

type ParsedKey = { readonly x: string } | { readonly problem: string };

function parseKey(value: string, name: string): ParsedKey {
  if (!value.startsWith("{")) return checkPoint(value, name);
  const jwk = parseJson(value);
  if (typeof jwk === "object" && jwk !== null && "d" in jwk)
    return { problem: `${name} holds a private key: remove its member d` };
  const { success, data } = JWK.safeParse(jwk);
  if (!success)
    return { problem: `${name} is not a JWK of a public Ed25519 key: expected kty OKP, crv Ed25519, and x` };
  return checkPoint(data.x, name);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function checkPoint(x: string, name: string): ParsedKey {
  const bytes = Buffer.from(x, "base64url");
  if (bytes.length !== 32 || bytes.toString("base64url") !== x)
    return {
      problem: `${name} is not a public key: expected x of an Ed25519 key (32 bytes as 43 base64url characters) or a JWK`,
    };
  return isPoint(bytes)
    ? { x }
    : {
        problem: `${name} is not a point on the Ed25519 curve: expected x from /.well-known/jwks.json, never a SIGNING_KEY`,
      };
}

/** Whether 32 bytes encode a point: (y² - 1) / (d·y² + 1) must be a square (RFC 8032, section 5.1.3). */
function isPoint(bytes: Uint8Array): boolean {
  const y = bytes.reduceRight((number, byte) => number * 256n + BigInt(byte), 0n) & (2n ** 255n - 1n);
  if (y >= P) return false;
  const square = (y * y) % P;
  return power(((square - 1n + P) * (D * square + 1n)) % P, (P - 1n) / 2n) !== P - 1n;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let [factor, rest] = [base, exponent]; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * factor) % P;
    factor = (factor * factor) % P;
  }
  return result;
}

import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import { base64url } from "jose";
import { base58 } from "../encodings.ts";
import { InputError, parseInput, quote } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "../strict-json.ts";

/** An Ed25519 key (RFC 8037), or one of P-256 (RFC 7518) or secp256k1 (RFC 8812). Public members only. */
export type PublicJwk =
  | { readonly kty: "OKP"; readonly crv: "Ed25519"; readonly x: string }
  | { readonly kty: "EC"; readonly crv: "P-256" | "secp256k1"; readonly x: string; readonly y: string };

/**
 * Returns the key that a DID document (DID Core 1.0) lists as this verification method, as a JWK or a Multikey.
 * @param kid a DID URL, `did:web:HOST#FRAGMENT`
 * @returns null if the document does not list it
 * @throws InputError if the document or the key cannot be read
 */
export function listedKey(text: string | Uint8Array, kid: string): PublicJwk | null {
  const document = read(text);
  const did = /^[^#]+(?=#[^#]+$)/.exec(kid)?.[0];
  if (did === undefined || document.id !== did) return null;
  const methods = Array.isArray(document.verificationMethod) ? (document.verificationMethod as readonly Json[]) : [];
  const method = methods.filter(isObject).find(({ id }) => id === kid || id === kid.slice(did.length));
  if (method === undefined) return null;
  const jwk = publicJwk(method.publicKeyJwk) ?? multikey(method.publicKeyMultibase);
  if (jwk === null) throw new InputError(`The key ${quote(kid)} is not an Ed25519, P-256, or secp256k1 key.`);
  return jwk;
}

function read(text: string | Uint8Array): JsonObject {
  const document = parseInput(
    () => parseStrictJson(text),
    (reason) => `The DID document cannot be read: ${reason}.`,
  );
  if (isObject(document)) return document;
  throw new InputError("The DID document is not a JSON object.");
}

const isCoordinate = (value: Json | undefined): value is string =>
  typeof value === "string" && /^[\w-]{43}$/.test(value);

/** Returns the public members of a JWK and ignores all others. Null for another type of key. */
export function publicJwk(given: Json | undefined): PublicJwk | null {
  if (!isObject(given)) return null;
  const { kty, crv, x, y } = given;
  if (!isCoordinate(x)) return null;
  if (kty === "OKP" && crv === "Ed25519") return { kty, crv, x };
  if (kty === "EC" && (crv === "P-256" || crv === "secp256k1") && isCoordinate(y)) return { kty, crv, x, y };
  return null;
}

/** A curve y² = x³ + ax + b over a field of p elements, where p is 3 modulo 4. */
interface Curve {
  readonly crv: "P-256" | "secp256k1";
  readonly p: bigint;
  readonly a: bigint;
  readonly b: bigint;
}

const P256_P = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
const CURVES: Readonly<Record<string, Curve>> = {
  // Keyed by the bytes of their multicodec prefixes, p256-pub (0x1200) and secp256k1-pub (0xe7).
  "128,36": {
    crv: "P-256",
    p: P256_P,
    a: P256_P - 3n,
    b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
  },
  "231,1": { crv: "secp256k1", p: 2n ** 256n - 2n ** 32n - 977n, a: 0n, b: 7n },
};

/** Decodes a Multikey in base58btc (`z…`): Ed25519, or a compressed point of P-256 or secp256k1. Null for any other. */
function multikey(text: Json | undefined): PublicJwk | null {
  if (typeof text !== "string" || !text.startsWith("z")) return null;
  const bytes = base58(text.slice(1), 34) ?? base58(text.slice(1), 35);
  if (bytes === null) return null;
  const prefix = bytes.subarray(0, 2).join();
  if (prefix === "237,1" && bytes.length === 34)
    return { kty: "OKP", crv: "Ed25519", x: base64url.encode(bytes.subarray(2)) };
  const curve = Object.hasOwn(CURVES, prefix) && bytes.length === 35 ? CURVES[prefix] : undefined;
  return curve === undefined ? null : decompressed(curve, bytes.subarray(2));
}

function decompressed({ crv, p, a, b }: Curve, point: Uint8Array): PublicJwk | null {
  const x = BigInt(`0x${bytesToHex(point.subarray(1))}`);
  const square = (x ** 3n + a * x + b) % p;
  const root = power(square, (p + 1n) / 4n, p);
  const sign = BigInt(point[0] ?? 0) - 2n;
  if (x >= p || (root * root) % p !== square || (sign !== 0n && sign !== 1n)) return null;
  const y = root % 2n === sign ? root : p - root;
  return {
    kty: "EC",
    crv,
    x: base64url.encode(point.subarray(1)),
    y: base64url.encode(hexToBytes(y.toString(16).padStart(64, "0"))),
  };
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (let [square, rest] = [base, exponent]; rest > 0n; square = (square * square) % modulus, rest >>= 1n)
    if (rest % 2n === 1n) result = (result * square) % modulus;
  return result;
}

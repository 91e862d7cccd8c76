import { base64url, type CryptoKey, importJWK } from "jose";
import { base58 } from "../base58.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "../strict-json.ts";

/** The multicodec prefix of an Ed25519 public key. */
const ED25519_PUB = [0xed, 0x01];

/** Ed25519, or P-256. */
export type PublicJwk =
  | { readonly kty: "OKP"; readonly crv: "Ed25519"; readonly x: string }
  | { readonly kty: "EC"; readonly crv: "P-256"; readonly x: string; readonly y: string };

/** The key of a JWS, with the only algorithm it may be used for. */
export interface DidKey {
  readonly alg: "EdDSA" | "ES256";
  readonly key: CryptoKey;
}

/**
 * The key that a DID document (DID Core 1.0) lists as this verification method: Ed25519, or P-256 as a JWK.
 * @param kid a DID URL, `did:web:HOST#FRAGMENT`
 * @returns null if the document does not list it
 * @throws InputError if the document or the key cannot be read
 */
export async function keyOf(text: string | Uint8Array, kid: string): Promise<DidKey | null> {
  const jwk = listedKey(text, kid);
  if (jwk === null) return null;
  const alg = jwk.kty === "OKP" ? "EdDSA" : "ES256";
  const key = await importJWK(jwk, alg).catch(() => null);
  if (key === null) throw new InputError(`The key ${quote(kid)} is listed with members that are no key.`);
  return { alg, key: key as CryptoKey };
}

/**
 * The same key as a JWK with its public members alone.
 * @throws InputError if the document or the key cannot be read
 */
export function listedKey(text: string | Uint8Array, kid: string): PublicJwk | null {
  const document = read(text);
  const did = /^[^#]+(?=#[^#]+$)/.exec(kid)?.[0];
  if (did === undefined || document.id !== did) return null;
  const methods = Array.isArray(document.verificationMethod) ? (document.verificationMethod as readonly Json[]) : [];
  const method = methods.filter(isObject).find(({ id }) => id === kid || id === kid.slice(did.length));
  if (method === undefined) return null;
  const jwk = jwkOf(method);
  if (jwk === null) throw new InputError(`The key ${quote(kid)} is neither an Ed25519 nor a P-256 key.`);
  return jwk;
}

function read(text: string | Uint8Array): JsonObject {
  try {
    const document = parseStrictJson(text);
    if (isObject(document)) return document;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new InputError(`The DID document cannot be read: ${error.message}.`);
  }
  throw new InputError("The DID document is not a JSON object.");
}

/** Only the public members: whatever else the document says of the key is not used. */
function jwkOf({ publicKeyJwk, publicKeyMultibase }: JsonObject): PublicJwk | null {
  if (isObject(publicKeyJwk)) {
    const { kty, crv, x, y } = publicKeyJwk;
    if (kty === "OKP" && crv === "Ed25519" && typeof x === "string") return { kty, crv, x };
    if (kty === "EC" && crv === "P-256" && typeof x === "string" && typeof y === "string") return { kty, crv, x, y };
    return null;
  }
  if (typeof publicKeyMultibase !== "string" || !publicKeyMultibase.startsWith("z")) return null;
  const bytes = base58(publicKeyMultibase.slice(1), 34);
  if (bytes === null || ED25519_PUB.some((byte, index) => bytes[index] !== byte)) return null;
  return { kty: "OKP", crv: "Ed25519", x: base64url.encode(bytes.slice(2)) };
}

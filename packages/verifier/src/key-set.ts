import { type CryptoKey, importJWK } from "jose";
import { InputError, parseInput, quote } from "./refusal.ts";
import { isObject, type Json, parseStrictJson } from "./strict-json.ts";

/** Ed25519 public keys by their key id. */
export type KeySet = ReadonlyMap<string, CryptoKey>;

/**
 * Returns the Ed25519 keys of a JWK Set (RFC 7517); keys of other types or uses are ignored.
 * @throws InputError if it is not a key set, contains a private key, repeats a key id, or has no Ed25519 key
 */
export async function parseKeySet(text: string): Promise<KeySet> {
  const set = parseInput(
    () => parseStrictJson(text),
    (reason) => `the key set cannot be read: ${reason}`,
  );
  if (!isObject(set)) throw new InputError("the key set is not a JSON object");
  const { keys } = set;
  if (!Array.isArray(keys)) throw new InputError("the key set is not a JWK Set with an array named keys");
  const found = new Map<string, CryptoKey>();
  for (const jwk of keys as readonly Json[]) {
    if (!isObject(jwk) || !isOurs(jwk)) continue;
    const { kid, x } = jwk;
    if ("d" in jwk) throw new InputError("the key set contains a private key: never share one with anyone");
    if (typeof kid !== "string" || typeof x !== "string" || !isKey(x))
      throw new InputError("the key set has an Ed25519 key without a usable kid and x");
    if (found.has(kid)) throw new InputError(`the key set contains the key ID ${quote(kid)} twice`);
    found.set(kid, (await importJWK({ kty: "OKP", crv: "Ed25519", x }, "EdDSA")) as CryptoKey);
  }
  if (found.size === 0) throw new InputError("the key set has no Ed25519 key for signatures");
  return found;
}

const isOurs = ({ kty, crv, use = "sig", alg = "EdDSA" }: Readonly<Record<string, Json>>): boolean =>
  kty === "OKP" && crv === "Ed25519" && use === "sig" && (alg === "EdDSA" || alg === "Ed25519");

/** 32 bytes in canonical base64url. */
const isKey = (x: string): boolean => /^[\w-]{42}[AEIMQUYcgkosw048]$/.test(x);

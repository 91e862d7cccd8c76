import { base64url, compactVerify, importJWK } from "jose";
import { InputError } from "../refusal.ts";
import { parseStrictJson } from "../strict-json.ts";
import type { PublicJwk } from "./did-document.ts";

/** Returns the only algorithm that a key may be used with (RFC 8037, RFC 7518, RFC 8812). */
export const algorithmOf = ({ crv }: PublicJwk): "EdDSA" | "ES256" | "ES256K" =>
  crv === "Ed25519" ? "EdDSA" : crv === "P-256" ? "ES256" : "ES256K";

/**
 * Returns whether a compact JWS was signed with this key, in the key's only algorithm.
 * @throws InputError if the key is invalid
 */
export async function verifyJws(jws: string, jwk: PublicJwk): Promise<boolean> {
  const alg = algorithmOf(jwk);
  if (jwk.crv === "secp256k1") return verifyEs256k(jws, jwk);
  const key = await importJWK({ ...jwk }, alg).catch(() => null);
  if (key === null) throw new InputError("The key's members are not a valid key.");
  return compactVerify(jws, key, { algorithms: [alg] }).then(
    () => true,
    () => false,
  );
}

/** jose and browsers do not support the curve. A signature matches if the key is one of the keys recovered from it. */
async function verifyEs256k(jws: string, { x, y }: Extract<PublicJwk, { kty: "EC" }>): Promise<boolean> {
  const [header = "", payload = "", signature = ""] = jws.split(".");
  const { alg, b64 } = parseStrictJson(base64url.decode(header)) as { readonly alg?: unknown; readonly b64?: unknown };
  const bytes = base64url.decode(signature);
  if (alg !== "ES256K" || b64 !== undefined || bytes.length !== 64) return false;
  const { bytesToHex, recoverPublicKey, sha256 } = await import("viem");
  const key = bytesToHex(new Uint8Array([4, ...base64url.decode(x), ...base64url.decode(y)]));
  const [r, s] = [bytesToHex(bytes.subarray(0, 32)), bytesToHex(bytes.subarray(32))];
  const hash = sha256(new TextEncoder().encode(`${header}.${payload}`));
  const recovered = [0, 1].map((yParity) => recoverPublicKey({ hash, signature: { r, s, yParity } }).catch(() => null));
  return (await Promise.all(recovered)).includes(key);
}

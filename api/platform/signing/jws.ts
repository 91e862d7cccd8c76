import { CompactSign, FlattenedSign } from "jose";
import type { SigningKey } from "./keys.ts";

/**
 * Signs texts for transport together with their signature, as a compact JWS (RFC 7515, section 3.1). `kid` is a DID
 * URL.
 */
export const compactJws =
  ({ privateKey }: SigningKey, kid: string) =>
  (payload: string): Promise<string> =>
    new CompactSign(Buffer.from(payload)).setProtectedHeader({ alg: "EdDSA", kid }).sign(privateKey);

/** A flattened JWS (RFC 7515, section 7.2.2) without its payload. */
export interface FlattenedJws {
  readonly protected: string;
  readonly signature: string;
}

/**
 * Signs texts whose verifiers already have the payload.
 * @param parameters header members in addition to the algorithm and the key's id
 */
export function flattenedJws(
  { privateKey, publicJwk: { kid } }: SigningKey,
  { typ, jku }: { readonly typ?: "JOSE"; readonly jku?: string } = {},
): (payload: string) => Promise<FlattenedJws> {
  const header = { alg: "EdDSA", ...(typ && { typ }), kid, ...(jku && { jku }) };
  return async (payload) => {
    const signing = new FlattenedSign(Buffer.from(payload)).setProtectedHeader(header);
    const { protected: encoded = "", signature } = await signing.sign(privateKey);
    return { protected: encoded, signature };
  };
}

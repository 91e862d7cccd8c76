import { multibase, type PublicJwk } from "./keys.ts";

/** The multicodec prefix of an Ed25519 public key (`ed25519-pub`, 0xed as a varint). */
const ED25519_PUB = [0xed, 0x01];

/** Returns the did:web identifier of the published address: its host, with a port's colon as `%3A`. */
export const didWeb = (baseUrl: string): string => didOfHost(new URL(baseUrl).host);

/** Returns the did:web identifier of a host, which may have a port. */
export const didOfHost = (host: string): string => `did:web:${host.replace(":", "%3A")}`;

/** Returns the `verificationMethod` of a proof. */
export const keyUrl = (did: string, { kid }: Pick<PublicJwk, "kid">): string => `${did}#${kid}`;

/**
 * Returns the DID document (DID Core 1.0) of a did:web identifier. Every key, including retired ones, may verify the
 * statements that it signed.
 */
export function didDocument(did: string, keys: readonly PublicJwk[]) {
  return {
    "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
    id: did,
    verificationMethod: keys.map((key) => ({
      id: keyUrl(did, key),
      type: "Multikey",
      controller: did,
      publicKeyMultibase: multibase(Buffer.from([...ED25519_PUB, ...Buffer.from(key.x, "base64url")])),
    })),
    assertionMethod: keys.map((key) => keyUrl(did, key)),
  };
}

/** Returns the service's DID document: its keys, and the transparency log of documents that they sign. */
export const issuerDocument = (did: string, keys: readonly PublicJwk[], logUrl: string) => ({
  ...didDocument(did, keys),
  service: [{ id: `${did}#log`, type: "TransparencyLog" as const, serviceEndpoint: logUrl }],
});

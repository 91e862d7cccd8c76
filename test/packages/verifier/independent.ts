import { DataIntegrityProof } from "@digitalbazaar/data-integrity";
import { createVerifyCryptosuite } from "@digitalbazaar/eddsa-jcs-2022-cryptosuite";
import canonicalize from "canonicalize";
import { createLocalJWKSet, flattenedVerify, type JSONWebKeySet } from "jose";
import signatures from "jsonld-signatures";

export interface DidDocument {
  readonly id: string;
  readonly verificationMethod: readonly { readonly id: string }[];
}

export interface SignedDocument {
  readonly proof: { readonly jws: string };
}

/** Returns whether `jose`, used like any JOSE program would use it, accepts the document's `jws`. */
export async function joseAccepts({ proof, ...document }: SignedDocument, jwks: JSONWebKeySet): Promise<boolean> {
  const [header = "", , signature = ""] = proof.jws.split(".");
  const payload = Buffer.from(canonicalize(document) ?? "").toString("base64url");
  return flattenedVerify({ protected: header, payload, signature }, createLocalJWKSet(jwks)).then(
    () => true,
    () => false,
  );
}

/**
 * Returns whether Digital Bazaar's implementation of the W3C suite accepts the document's `proofValue`. It can load
 * only this DID document.
 */
export async function w3cAccepts(document: object, did: DidDocument): Promise<boolean> {
  const known = new Map<string, unknown>([[did.id, did], ...did.verificationMethod.map((m) => [m.id, m] as const)]);
  const { verified } = await signatures.verify(structuredClone(document), {
    suite: new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() }),
    purpose: new signatures.purposes.AssertionProofPurpose(),
    documentLoader: async (url) => {
      if (!known.has(url)) throw new Error(`${url} is not known, and nothing is fetched`);
      return { document: known.get(url) };
    },
  });
  return verified;
}

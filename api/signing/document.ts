import { sign } from "node:crypto";
import { keyUrl } from "./did.ts";
import type { SigningKey } from "./keys.ts";
import { jcs, proofValue } from "./proof-value.ts";

/** A document before it is signed. Its numbers are safe integers; money is text. */
export interface Unsigned {
  readonly "@context": readonly string[];
  readonly proof?: never;
}

export interface Proof {
  /** The document's own. */
  readonly "@context": readonly string[];
  readonly type: "DataIntegrityProof";
  readonly cryptosuite: "eddsa-jcs-2022";
  readonly created: string;
  /** `did:web:HOST#KID`. */
  readonly verificationMethod: string;
  readonly proofPurpose: "assertionMethod";
  /** RFC 7515, appendix F: `header..signature`, over the JCS form of the document without `proof`. */
  readonly jws: string;
  /** The W3C suite's signature, over the other members of the proof, `jws` among them, and the document. */
  readonly proofValue: string;
}

export type Signed<Document> = Document & { readonly proof: Proof };

/** Signs every kind of document that the service publishes. */
export interface Signer {
  /** The did:web identifier that documents name as their issuer. */
  readonly issuer: string;
  /** The document as JSON reads it back, with its proof. Members stand in canonical order: a verifier need not sort them. */
  sign<Document extends Unsigned>(document: Document, at: Date): Signed<Document>;
}

export function createSigner({ privateKey, publicJwk }: SigningKey, issuer: string): Signer {
  const header = base64url(JSON.stringify({ alg: "EdDSA", kid: publicJwk.kid }));
  // In one thread: `jose` would hand each signature to another and wait, which takes longer than to sign.
  const detachedJws = (payload: string): string =>
    `${header}..${sign(null, Buffer.from(`${header}.${base64url(payload)}`), privateKey).toString("base64url")}`;
  return {
    issuer,
    sign(document, at) {
      refuseInexactNumbers(document);
      const canonical = jcs(document);
      const options = {
        "@context": document["@context"],
        type: "DataIntegrityProof",
        cryptosuite: "eddsa-jcs-2022",
        created: at.toISOString(),
        verificationMethod: keyUrl(issuer, publicJwk),
        proofPurpose: "assertionMethod",
        jws: detachedJws(canonical),
      } as const;
      const proof = sorted({ ...options, proofValue: proofValue(options, canonical, privateKey) });
      return sorted({ ...(JSON.parse(canonical) as typeof document), proof });
    },
  };
}

/** The same members in the order of RFC 8785; those inside of them stay as they are. */
const sorted = <Members extends object>(members: Members): Members =>
  Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1))) as Members;

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** A number that another program reads or writes differently would break the signature. */
function refuseInexactNumbers(value: unknown): void {
  if (typeof value === "number" && (!Number.isSafeInteger(value) || Object.is(value, -0)))
    throw new Error(`a signed number is a safe integer, not ${value}`);
  if (typeof value === "object" && value !== null) for (const part of Object.values(value)) refuseInexactNumbers(part);
}

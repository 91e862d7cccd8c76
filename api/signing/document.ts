import { type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { keyUrl } from "./did.ts";
import type { SigningKey } from "./keys.ts";
import { multibase } from "./multibase.ts";
import { hashData, jcs, proofValue } from "./proof-value.ts";

/** A document before signing. Its numbers are safe integers; money is text. */
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
  /** The W3C suite's signature, over the document and the proof's other members, including `jws`. */
  readonly proofValue: string;
}

export type Signed<Document> = Document & { readonly proof: Proof };

/** Signs every kind of document the service publishes. */
export interface Signer {
  /** The did:web identifier documents name as their issuer. */
  readonly issuer: string;
  /**
   * The document as parsed from JSON, with its proof. Members are in canonical order, so verifiers need not sort them.
   */
  sign<Document extends Unsigned>(document: Document, at: Date): Signed<Document>;
  /** The JCS form (RFC 8785) of the document with its proof, for a record that is kept as text. */
  signAsText(document: Unsigned, at: Date): string;
  /** The same text, signed by other threads: for many at once, which would keep this one from its other work. */
  signAside(document: Unsigned, at: Date): Promise<string>;
}

const signInThread = promisify<null, Buffer, KeyObject, Buffer>(sign);

export function createSigner({ privateKey, publicJwk }: SigningKey, issuer: string): Signer {
  const header = base64url(JSON.stringify({ alg: "EdDSA", kid: publicJwk.kid }));
  const canonicalOf = (document: Unsigned): string => {
    refuseInexactNumbers(document);
    return jcs(document);
  };
  const signingInput = (canonical: string) => Buffer.from(`${header}.${base64url(canonical)}`);
  const optionsOf = (document: Unsigned, at: Date, signature: Buffer) =>
    ({
      "@context": document["@context"],
      type: "DataIntegrityProof",
      cryptosuite: "eddsa-jcs-2022",
      created: at.toISOString(),
      verificationMethod: keyUrl(issuer, publicJwk),
      proofPurpose: "assertionMethod",
      jws: `${header}..${signature.toString("base64url")}`,
    }) as const;
  // Synchronous: for one document, to wait for another thread takes longer than to sign.
  const prove = (document: Unsigned, at: Date): { readonly canonical: string; readonly proof: Proof } => {
    const canonical = canonicalOf(document);
    const options = optionsOf(document, at, sign(null, signingInput(canonical), privateKey));
    return { canonical, proof: { ...options, proofValue: proofValue(options, canonical, privateKey) } };
  };
  return {
    issuer,
    sign(document, at) {
      const { canonical, proof } = prove(document, at);
      return sorted({ ...(JSON.parse(canonical) as typeof document), proof: sorted(proof) });
    },
    signAsText: (document, at) => jcs({ ...document, proof: prove(document, at).proof }),
    async signAside(document, at) {
      const canonical = canonicalOf(document);
      const options = optionsOf(document, at, await signInThread(null, signingInput(canonical), privateKey));
      const value = await signInThread(null, hashData(options, canonical), privateKey);
      return jcs({ ...document, proof: { ...options, proofValue: multibase(value) } });
    },
  };
}

/** The same members in RFC 8785 order; nested ones are left as they are. */
const sorted = <Members extends object>(members: Members): Members =>
  Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1))) as Members;

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

/** A number that other programs read or write differently would break the signature. */
function refuseInexactNumbers(value: unknown): void {
  if (typeof value === "number" && (!Number.isSafeInteger(value) || Object.is(value, -0)))
    throw new Error(`a signed number is a safe integer, not ${value}`);
  if (typeof value === "object" && value !== null) for (const part of Object.values(value)) refuseInexactNumbers(part);
}

import { createHash, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import canonicalize from "canonicalize";
import { CompactSign, FlattenedSign } from "jose";
import { keyUrl } from "./did.ts";
import { multibase, type SigningKey } from "./keys.ts";

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

/** Returns the RFC 8785 form of a JSON value. */
export function jcs(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error("only a JSON value has a canonical form");
  return text;
}

const signAside = promisify<null, Buffer, KeyObject, Buffer>(sign);

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Returns the data that `eddsa-jcs-2022` signs: the digest of the proof's options, then the digest of the document
 * without its proof.
 */
export const hashData = (options: object, canonicalDocument: string): Buffer =>
  Buffer.concat([sha256(jcs(options)), sha256(canonicalDocument)]);

/**
 * Returns the `proofValue` of W3C Data Integrity EdDSA Cryptosuites 1.0, section 3.3 (eddsa-jcs-2022).
 * @param options the proof without `proofValue`
 * @param canonicalDocument the JCS form of the document without `proof`
 */
export const proofValue = async (options: object, canonicalDocument: string, key: KeyObject): Promise<string> =>
  multibase(await signAside(null, hashData(options, canonicalDocument), key));

/** A document before signing. Its numbers are safe integers; money is text. */
export interface Unsigned {
  readonly "@context": readonly string[];
  readonly proof?: never;
}

export interface Proof {
  /** The same as the document's. */
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
  /** The did:web identifier of the issuer in documents. */
  readonly issuer: string;
  /**
   * Returns the document as parsed from JSON, with its proof. Members are in canonical order, so verifiers need not
   * sort them.
   */
  sign<Document extends Unsigned>(document: Document, at: Date): Promise<Signed<Document>>;
  /** Returns the JCS form (RFC 8785) of the document with its proof, for a record that is stored as text. */
  signAsText(document: Unsigned, at: Date): Promise<string>;
}

export function createSigner(key: SigningKey, issuer: string): Signer {
  const signJws = flattenedJws(key);
  const prove = async (
    document: Unsigned,
    at: Date,
  ): Promise<{ readonly canonical: string; readonly proof: Proof }> => {
    refuseInexactNumbers(document);
    const canonical = jcs(document);
    const { protected: header, signature } = await signJws(canonical);
    const options = {
      "@context": document["@context"],
      type: "DataIntegrityProof",
      cryptosuite: "eddsa-jcs-2022",
      created: at.toISOString(),
      verificationMethod: keyUrl(issuer, key.publicJwk),
      proofPurpose: "assertionMethod",
      jws: `${header}..${signature}`,
    } as const;
    return { canonical, proof: { ...options, proofValue: await proofValue(options, canonical, key.privateKey) } };
  };
  return {
    issuer,
    async sign(document, at) {
      const { canonical, proof } = await prove(document, at);
      return sorted({ ...(JSON.parse(canonical) as typeof document), proof: sorted(proof) });
    },
    signAsText: async (document, at) => jcs({ ...document, proof: (await prove(document, at)).proof }),
  };
}

/** Returns the members in RFC 8785 order. Nested ones are not sorted. */
const sorted = <Members extends object>(members: Members): Members =>
  Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1))) as Members;

/** Throws on a number that other programs read or write differently, because it would break the signature. */
function refuseInexactNumbers(value: unknown): void {
  if (typeof value === "number" && (!Number.isSafeInteger(value) || Object.is(value, -0)))
    throw new Error(`a signed number is a safe integer, not ${value}`);
  if (typeof value === "object" && value !== null) for (const part of Object.values(value)) refuseInexactNumbers(part);
}

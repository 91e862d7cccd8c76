import { type Freshness, freshness } from "./freshness.ts";
import { parseIssuer } from "./issuer.ts";
import { jcs } from "./jcs.ts";
import type { KeySet } from "./key-set.ts";
import { readProof } from "./proof.ts";
import { quote, Refusal, type RefusalCode } from "./refusal.ts";
import { jwsHolds, proofValueHolds, readJws } from "./signatures.ts";
import { isObject, type JsonObject, parseStrictJson } from "./strict-json.ts";

export interface Expectation {
  /** The trusted keys. The caller is responsible for their origin. */
  readonly keys: KeySet;
  /** Origin or did:web identifier of the expected issuer; if omitted, any holder of a trusted key. */
  readonly issuer?: string | undefined;
  /** The time to judge freshness at; now if omitted. */
  readonly at?: Date | undefined;
}

export type Signature =
  /** `issuer` is the did:web identifier under which the key `kid` signed; `created` is when, in ISO 8601. */
  | { readonly valid: true; readonly issuer: string; readonly kid: string; readonly created: string }
  | { readonly valid: false; readonly code: RefusalCode; readonly reason: string };

export interface Report {
  /** Whether it is signed by a trusted key, and currently valid. */
  readonly valid: boolean;
  readonly signature: Signature;
  readonly freshness: Freshness;
  /** The document, once its signature was found valid: read it from here, never from the text again. */
  readonly document: JsonObject | null;
}

/**
 * Checks a signed document of the service, such as a credential or a verdict: its `jws` and its `proofValue`, both with
 * the key that its proof names.
 * @throws InputError when the expectation is invalid; faults of the document are in the report
 */
export async function verifyDocument(source: string | Uint8Array, expected: Expectation): Promise<Report> {
  try {
    return await verify(source, expected);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const signature = { valid: false, code: error.code, reason: error.message } as const;
    return { valid: false, signature, freshness: { state: "unknown" }, document: null };
  }
}

async function verify(source: string | Uint8Array, { keys, issuer, at = new Date() }: Expectation): Promise<Report> {
  const expectedDid = issuer === undefined ? null : parseIssuer(issuer).did;
  const document = parseStrictJson(source);
  if (!isObject(document)) throw new Refusal("malformed_document", "the document is not a JSON object");
  const proof = readProof(document);
  if (expectedDid !== null && proof.issuer.did !== expectedDid) {
    const reason = `the document is signed by ${quote(proof.issuer.did)}, expected ${quote(expectedDid)}`;
    throw new Refusal("issuer_mismatch", reason);
  }
  const jws = readJws(proof.jws, proof.kid);
  const key = keys.get(proof.kid);
  if (key === undefined) throw new Refusal("unknown_key", `no trusted key has the ID ${quote(proof.kid)}`);
  const { proof: _, ...unsigned } = document;
  const canonical = new TextEncoder().encode(jcs(unsigned));
  const signed = { canonicalOptions: jcs(proof.options), proofValue: proof.proofValue };
  const [jwsValid, valueValid] = await Promise.all([
    jwsHolds(jws, canonical, key),
    proofValueHolds(signed, canonical, key),
  ]);
  if (!jwsValid) throw new Refusal("jws_mismatch", "the jws does not verify: this document is not what was signed");
  if (!valueValid)
    throw new Refusal(
      "proof_value_mismatch",
      "the proofValue does not verify: this document or its proof is not what was signed",
    );
  const { created } = proof;
  const state = freshness(document, created, at);
  return {
    valid: state.state === "current" || state.state === "no_expiry",
    signature: { valid: true, issuer: proof.issuer.did, kid: proof.kid, created },
    freshness: state,
    document,
  };
}

import { sign } from "node:crypto";
import { hashData, jcs } from "../../../api/platform/signing/document.ts";
import { multibase } from "../../../api/platform/signing/keys.ts";
import { CREDENTIAL, ISSUER, KEY, SAMPLE_NOW } from "./samples.ts";

export interface Forgery {
  /** The document without its proof. */
  readonly document?: object;
  /** The jws header, an object or the JSON text itself. */
  readonly header?: unknown;
  /** The segments of the jws: header, payload as it is sent, signature. */
  readonly segments?: (header: string, payload: string, signature: string) => string;
  /** Members of the proof that differ; `undefined` leaves one out. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Replaces the finished proof value. */
  readonly value?: (value: string) => unknown;
  readonly jwsKey?: typeof KEY;
  readonly valueKey?: typeof KEY;
}

export const HEADER = { alg: "EdDSA", kid: KEY.publicJwk.kid };

/** A signed credential that differs from a good one in what is given only: both signatures are made over the difference. */
export function forge(forgery: Forgery = {}) {
  const { document = CREDENTIAL, header = HEADER, segments = (h, _, s) => `${h}..${s}` } = forgery;
  const { options = {}, value = (v) => v, jwsKey = KEY, valueKey = KEY } = forgery;
  const canonical = jcs(document);
  const first = base64url(typeof header === "string" ? header : JSON.stringify(header));
  const payload = base64url(canonical);
  const signature = sign(null, Buffer.from(`${first}.${payload}`), jwsKey.privateKey).toString("base64url");
  const proof = {
    "@context": CREDENTIAL["@context"],
    type: "DataIntegrityProof",
    cryptosuite: "eddsa-jcs-2022",
    created: SAMPLE_NOW.toISOString(),
    verificationMethod: `${ISSUER}#${KEY.publicJwk.kid}`,
    proofPurpose: "assertionMethod",
    jws: segments(first, payload, signature),
    ...options,
  };
  const proofValue = multibase(sign(null, hashData(proof, canonical), valueKey.privateKey));
  return { ...document, proof: { ...proof, proofValue: value(proofValue) } };
}

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

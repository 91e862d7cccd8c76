import { base58 } from "./encodings.ts";
import { isTime } from "./freshness.ts";
import { type Issuer, issuerOfDid } from "./issuer.ts";
import { jcs } from "./jcs.ts";
import { quote, Refusal } from "./refusal.ts";
import { isObject, type Json, type JsonObject } from "./strict-json.ts";

/** A proof whose form has been checked, but not its signatures. */
export interface Proof {
  readonly issuer: Issuer;
  readonly kid: string;
  readonly created: string;
  readonly jws: string;
  readonly proofValue: Uint8Array<ArrayBuffer>;
  /** The members that `proofValue` signs. */
  readonly options: JsonObject;
}

/** A proof has exactly these members: one unknown to this verifier could change its meaning. */
const MEMBERS = [
  "@context",
  "type",
  "cryptosuite",
  "created",
  "verificationMethod",
  "proofPurpose",
  "jws",
  "proofValue",
];
const FIXED = { type: "DataIntegrityProof", cryptosuite: "eddsa-jcs-2022", proofPurpose: "assertionMethod" } as const;

/**
 * Returns the proof of a document, in the only form that the service writes.
 * @throws Refusal `malformed_document`, `malformed_proof` or `issuer_mismatch`
 */
export function readProof(document: JsonObject): Proof {
  const { proof, "@context": context, issuer: named } = document;
  if (proof === undefined) throw new Refusal("malformed_document", "there is no proof");
  if (!isObject(proof)) throw new Refusal("malformed_proof", "the proof is not a single object");
  const strange = Object.keys(proof).find((name) => !MEMBERS.includes(name));
  if (strange !== undefined) throw new Refusal("malformed_proof", `the proof has an unknown member ${quote(strange)}`);
  for (const [name, expected] of Object.entries(FIXED)) {
    if (proof[name] !== expected)
      throw new Refusal("malformed_proof", `${name} is ${quote(proof[name])}, expected ${quote(expected)}`);
  }
  const { "@context": repeated } = proof;
  if (context === undefined || repeated === undefined || jcs(repeated) !== jcs(context))
    throw new Refusal("malformed_proof", "the proof's @context is not the document's");
  if (!isTime(proof.created))
    throw new Refusal("malformed_proof", "created is not a UTC time like 2026-11-21T09:30:00Z");
  if (typeof proof.jws !== "string") throw new Refusal("malformed_proof", "there is no jws");
  const { issuer, kid } = readMethod(proof.verificationMethod);
  if (named !== undefined && named !== issuer.did)
    throw new Refusal(
      "issuer_mismatch",
      `the document names the issuer ${quote(named)}, but its proof names ${quote(issuer.did)}`,
    );
  const { proofValue, ...options } = proof;
  return { issuer, kid, created: proof.created, jws: proof.jws, proofValue: readValue(proofValue), options };
}

function readMethod(method: Json | undefined): Pick<Proof, "issuer" | "kid"> {
  const [, did = "", kid = ""] = /^([^#]+)#([A-Za-z0-9_-]+)$/.exec(typeof method === "string" ? method : "") ?? [];
  const issuer = issuerOfDid(did);
  if (issuer !== null) return { issuer, kid };
  throw new Refusal("malformed_proof", `verificationMethod is ${quote(method)}, expected did:web:HOST#KID`);
}

function readValue(text: Json | undefined): Uint8Array<ArrayBuffer> {
  const value = typeof text === "string" && text.startsWith("z") ? base58(text.slice(1), 64) : null;
  if (value !== null) return value;
  throw new Refusal("malformed_proof", "proofValue is not z followed by 64 bytes in base58btc");
}

import { type Claims, claimsOf } from "../claims.ts";
import { Refusal, type RefusalCode } from "../refusal.ts";
import type { JsonObject } from "../strict-json.ts";
import { type Expectation, verifyDocument } from "../verify-document.ts";
import { bindEntry, bindListed, parseEntry, publishedDocument } from "./entry.ts";
import { leafHash } from "./hash.ts";
import type { Policy } from "./policy.ts";
import { parseProof, verifyProof } from "./tlog-proof.ts";

/** The expected subject of a proof. */
export type Subject =
  /** The record's JSON, as received. */
  | { readonly record: string | Uint8Array }
  /** One of these certificates, as a wallet's record (`certs`) or credential (`conformance`) lists them. */
  | { readonly wallet: string; readonly certificates: readonly JsonObject[] };

export interface CheckLogged {
  /** The text of the `.tlog-proof`. */
  readonly proof: string | Uint8Array;
  readonly policy: Policy;
  /** The expected signer of the document in the entry. */
  readonly expected: Expectation;
  readonly subject: Subject;
}

export type LoggedReport =
  | {
      readonly valid: true;
      /** The log's origin. */
      readonly log: string;
      /** The entry's index, from 0, in a tree of `size` entries. */
      readonly index: number;
      readonly size: number;
      readonly type: string;
      /** The id of the record. */
      readonly id: string;
      /** The signer of the entry's document, as a did:web identifier. */
      readonly issuer: string;
      /** The claims of the entry's document, and their subject. */
      readonly claims: Claims;
      /** POSIX times of the newest cosignatures. */
      readonly witnesses: readonly { readonly name: string; readonly seconds: number }[];
    }
  | { readonly valid: false; readonly code: RefusalCode; readonly reason: string };

/**
 * Checks that a record is in the log: the entry is about it, the issuer signed the entry's document, the entry is in
 * the tree at the index that it names, and the policy's quorum has cosigned that tree. Nothing is fetched.
 * @throws InputError when the expectation is invalid; faults of the proof or the record are in the report
 */
export async function checkLogged(given: CheckLogged): Promise<LoggedReport> {
  try {
    return { valid: true, ...(await logged(given)) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { valid: false, code: error.code, reason: error.message };
  }
}

async function logged({ proof, policy, expected, subject }: CheckLogged) {
  const parsed = parseProof(proof);
  if (parsed.extra === undefined) throw new Refusal("malformed_log_proof", "the proof does not contain the entry");
  const shown = await verifyProof(parsed, leafHash(parsed.extra), policy);
  const entry = parseEntry(parsed.extra);
  if (entry.index !== shown.index)
    throw new Refusal("entry_mismatch", `the entry names the index ${entry.index}, but is at ${shown.index}`);
  const record = "record" in subject ? publishedDocument(entry.type, subject.record) : null;
  if (record !== null) bindEntry(entry, record);
  else if ("wallet" in subject) bindListed(entry, subject);
  const signed = "document" in entry.content ? JSON.stringify(entry.content.document) : whole(record);
  const { signature, document } = await verifyDocument(signed, expected);
  if (!signature.valid) throw new Refusal(signature.code, `the entry's document: ${signature.reason}`);
  const claims = claimsOf(document ?? {});
  const { checkpoint, log, index, witnesses } = shown;
  const { type, id } = entry;
  return { log, index, size: checkpoint.size, type, id, issuer: signature.issuer, claims, witnesses };
}

/** The document of an entry that has only a digest: the record itself, whose digest was compared. */
function whole(record: string | Uint8Array | null): string | Uint8Array {
  if (record !== null) return record;
  throw new Refusal("entry_mismatch", "the entry contains only the digest of a document");
}

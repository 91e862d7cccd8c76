import { type Claims, claimsOf } from "../claims.ts";
import { Refusal, type RefusalCode } from "../refusal.ts";
import type { JsonObject } from "../strict-json.ts";
import { type Expectation, verifyDocument } from "../verify-document.ts";
import { bindEntry, bindListed, parseEntry, publishedDocument } from "./entry.ts";
import { leafHash } from "./hash.ts";
import type { Policy } from "./policy.ts";
import { parseProof, verifyProof } from "./tlog-proof.ts";

/** What a proof should be about. */
export type Subject =
  /** The record's JSON, as it was received. */
  | { readonly record: string | Uint8Array }
  /** One of these certificates, as a wallet's record (`certs`) or credential (`conformance`) lists them. */
  | { readonly wallet: string; readonly certificates: readonly JsonObject[] };

export interface CheckLogged {
  /** The text of the `.tlog-proof`. */
  readonly proof: string | Uint8Array;
  readonly policy: Policy;
  /** Who must have signed the document in the entry. */
  readonly expected: Expectation;
  readonly subject: Subject;
}

export type LoggedReport =
  | {
      readonly valid: true;
      /** The log's origin. */
      readonly log: string;
      /** The entry's place, from 0, in a tree of `size` entries. */
      readonly index: number;
      readonly size: number;
      readonly type: string;
      /** The record's. */
      readonly id: string;
      /** Who signed the entry's document, as a did:web identifier. */
      readonly issuer: string;
      /** What the entry's document says, and about whom. */
      readonly claims: Claims;
      /** POSIX times of the newest cosignatures. */
      readonly witnesses: readonly { readonly name: string; readonly seconds: number }[];
    }
  | { readonly valid: false; readonly code: RefusalCode; readonly reason: string };

/**
 * Checks that a record is in the log: the entry is about it, its issuer signed the entry's document, the entry stands in the
 * tree at the index that it names, and the policy's quorum has cosigned that tree. Nothing is fetched.
 * @throws InputError when the expectation is wrong; whatever is wrong with proof or record is in the report
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
  if (parsed.extra === undefined) throw new Refusal("malformed_log_proof", "the proof does not carry the entry");
  const shown = await verifyProof(parsed, leafHash(parsed.extra), policy);
  const entry = parseEntry(parsed.extra);
  if (entry.index !== shown.index)
    throw new Refusal("entry_mismatch", `the entry names the index ${entry.index}, and stands at ${shown.index}`);
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

/** What an entry stands for that holds a digest: the record itself, whose digest has been compared. */
function whole(record: string | Uint8Array | null): string | Uint8Array {
  if (record !== null) return record;
  throw new Refusal("entry_mismatch", "the entry holds only the digest of a document");
}

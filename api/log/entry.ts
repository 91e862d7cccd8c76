import { createHash } from "node:crypto";
import { MAX_ENTRY_BYTES } from "../../packages/verifier/src/tlog/bundle.ts";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { jcs, type Signer } from "../platform/signing/document.ts";

/** A stored document that is larger is named by its digest: each copy of the log would keep it twice. */
const MAX_DOCUMENT_BYTES = 16_384;

export interface EntryContent {
  readonly type: EntryType;
  /** The record's id. */
  readonly id: string;
  /** Its document in canonical form (RFC 8785). */
  readonly document: string;
  /** Where the document is published on its own; null where the log alone has it. */
  readonly url: string | null;
}

/** An entry of the log at this index: the leaf's bytes, in canonical form. @throws Error if it is too large for a log */
export function entryBytes({ type, id, document, url }: EntryContent, index: number): Buffer {
  const isNamed = url !== null && Buffer.byteLength(document) > MAX_DOCUMENT_BYTES;
  const entry = Buffer.from(
    isNamed
      ? jcs({ id, index, sha256: createHash("sha256").update(document).digest("hex"), type, url, version: 1 })
      : `{"document":${document},${jcs({ id, index, type, version: 1 }).slice(1)}`,
  );
  if (entry.length > MAX_ENTRY_BYTES)
    throw new Error(`the entry of ${type} ${id} has ${entry.length} bytes, more than ${MAX_ENTRY_BYTES}`);
  return entry;
}

/** What the database knows of a record that waits for its place in the log. */
export type Recorded =
  /** `members` are the certificate's own, as it was issued. */
  | { readonly type: "certificate"; readonly members: object; readonly issuedAt: Date }
  | { readonly type: "reversal" }
  | { readonly type: "proof"; readonly document: unknown; readonly publishedAt: Date }
  /** `members` are the exam's own, as it ended. */
  | { readonly type: "seller_certificate"; readonly members: object; readonly issuedAt: Date }
  | { readonly type: "seller_correction"; readonly reason: string; readonly correctedAt: Date }
  /** Signed when it was made, and stored as text. */
  | { readonly type: "signed"; readonly document: string }
  /** A policy, a version of the score, a key: `members` say what it is, `type` among them. */
  | { readonly type: "announced"; readonly members: Announced["members"] };

export interface Waiting {
  readonly type: EntryType;
  readonly ref: string;
  /** When the record came to be, by the database's clock. */
  readonly at: Date;
  readonly recorded: Recorded;
}

/** Something that the service publishes by being started with it. */
export interface Announced {
  readonly type: EntryType;
  readonly ref: string;
  /** The members that say what it is, `type` among them. */
  readonly members: Readonly<Record<string, unknown>>;
}

export interface DocumentParts {
  readonly signer: Signer;
  /** No trailing slash. */
  readonly baseUrl: string;
}

const CONTEXT = ["https://www.w3.org/ns/credentials/undefined-terms/v2"];

/** Where each kind of stored document is published, below the service's address. */
const PATHS: Partial<Record<EntryType, string>> = {
  verdict: "/arbiter/verdict/",
  correction: "/arbiter/verdict/",
  evaluation: "/escrow/evaluation/",
  contest_answer: "/escrow/contest/",
};

/**
 * The signed document of a record: the stored one, or one that is made for the log out of what never changes, so the same
 * key makes the same bytes.
 */
export function createDocuments({ signer, baseUrl }: DocumentParts) {
  const { issuer } = signer;
  const sign = (members: object, at: Date): Promise<string> =>
    signer.signAsText(Object.assign(members, { "@context": CONTEXT, issuer }), at);
  return async ({ type, ref: id, at, recorded }: Waiting): Promise<EntryContent> => {
    const made = async (members: object, when: Date): Promise<EntryContent> => ({
      type,
      id,
      document: await sign(members, when),
      url: null,
    });
    const cert_url = `${baseUrl}/cert/${id}`;
    const certificate = { certificate: id, cert_url };
    switch (recorded.type) {
      case "signed":
        return { type, id, document: jcs(JSON.parse(recorded.document)), url: `${baseUrl}${PATHS[type] ?? "/"}${id}` };
      case "certificate":
        return made({ ...(exact(recorded.members) as object), type: "IssuedCertificate", cert_url }, recorded.issuedAt);
      case "seller_certificate":
        return made({ ...recorded.members, type: "IssuedSellerCertificate", cert_url }, recorded.issuedAt);
      case "seller_correction": {
        const { reason, correctedAt } = recorded;
        const members = { type: "CorrectedSellerCertificate", ...certificate, reason };
        return made({ ...members, corrected_at: correctedAt.toISOString() }, correctedAt);
      }
      case "reversal":
        return made({ type: "ReversedCertificate", ...certificate, reversed_at: at.toISOString() }, at);
      case "proof": {
        const published_at = recorded.publishedAt.toISOString();
        const members = { type: "PublishedProof", ...certificate, published_at, fail_proof: exact(recorded.document) };
        return made(members, recorded.publishedAt);
      }
      case "announced":
        return made({ ...recorded.members }, at);
    }
  };
}

/** A number that programs may read differently stands as its text: a payer's own choice of times can be that large. */
function exact(value: unknown): unknown {
  // Minus zero is a number in JSON, but not one that can be signed.
  if (typeof value === "number") return Number.isSafeInteger(value) ? value + 0 : JSON.stringify(value);
  if (Array.isArray(value)) return value.map(exact);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, exact(part)]));
}

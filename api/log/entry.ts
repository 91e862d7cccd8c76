import { createHash } from "node:crypto";
import type { Json, JsonObject } from "../../packages/verifier/src/strict-json.ts";
import { exact } from "../../packages/verifier/src/tlog/entry.ts";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { MAX_ENTRY_BYTES } from "../../packages/verifier/src/tlog/tile.ts";
import { jcs, type Signer } from "../platform/signing/document.ts";

/** A larger document that is published elsewhere is logged by its digest, so that the log does not store it again. */
const MAX_DOCUMENT_BYTES = 16_384;

export interface EntryContent {
  readonly type: EntryType;
  /** The record's id. */
  readonly id: string;
  /** The record's document in canonical form (RFC 8785). */
  readonly document: string;
  /** The URL of the published document, or null if only the log has it. */
  readonly url: string | null;
}

/** Returns the leaf's bytes for an entry at this index, in canonical form. @throws Error if it is too large for a log */
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

/** The stored data of a record that waits to be logged. */
export type Recorded =
  /** `members` are from the certificate, as issued. */
  | { readonly type: "certificate"; readonly members: object; readonly issuedAt: Date }
  | { readonly type: "reversal" }
  | { readonly type: "proof"; readonly document: unknown; readonly publishedAt: Date }
  /** `members` are from the exam's result. */
  | { readonly type: "seller_certificate"; readonly members: object; readonly issuedAt: Date }
  | { readonly type: "seller_correction"; readonly reason: string; readonly correctedAt: Date }
  /** Signed when the record was created, and stored as text. */
  | { readonly type: "signed"; readonly document: string }
  /** A policy, a score version, or a key. `members` describe it and include its `type`. */
  | { readonly type: "announced"; readonly members: Announced["members"] };

export interface Waiting {
  readonly type: EntryType;
  readonly ref: string;
  /** When the record was created, by the database's clock. */
  readonly at: Date;
  readonly recorded: Recorded;
}

/** A fact that the service publishes when it starts. */
export interface Announced {
  readonly type: EntryType;
  readonly ref: string;
  /** The members of its document, including `type`. */
  readonly members: Readonly<Record<string, unknown>>;
}

export interface DocumentParts {
  readonly signer: Signer;
  /** No trailing slash. */
  readonly baseUrl: string;
}

const CONTEXT = ["https://www.w3.org/ns/credentials/undefined-terms/v2"];

const PATHS: Partial<Record<EntryType, string>> = {
  verdict: "/arbiter/verdict/",
  correction: "/arbiter/verdict/",
  evaluation: "/escrow/evaluation/",
  contest_answer: "/escrow/contest/",
};

/**
 * Creates the function that returns a record's signed document: the stored one, or one made for the log from immutable
 * data, so that the same key produces the same bytes.
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
        return made(
          { ...(exact(recorded.members as JsonObject) as JsonObject), type: "IssuedCertificate", cert_url },
          recorded.issuedAt,
        );
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
        const members = {
          type: "PublishedProof",
          ...certificate,
          published_at,
          fail_proof: exact(recorded.document as Json),
        };
        return made(members, recorded.publishedAt);
      }
      case "announced":
        return made({ ...recorded.members }, at);
    }
  };
}

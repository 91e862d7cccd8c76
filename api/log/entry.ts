import { createHash } from "node:crypto";
import { MAX_ENTRY_BYTES } from "../../packages/verifier/src/tlog/bundle.ts";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { jcs } from "../platform/signing/proof-value.ts";

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

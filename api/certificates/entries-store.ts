import type { EntryReaders } from "../log/index.ts";
import { issuedCertificate } from "./issue.ts";
import { ISSUED_COLUMNS, type IssuedColumns, parseIssued } from "./store.ts";

const CERTIFICATES = `SELECT ${ISSUED_COLUMNS} FROM certificate c WHERE c.id = ANY($1)`;
const PROOFS = "SELECT certificate, document, published_at FROM published_proof WHERE certificate = ANY($1)";

/** Reads certificates and published proofs as log entries. */
export const certificateEntries: EntryReaders = {
  async certificate(ask, refs) {
    const { rows } = await ask<IssuedColumns>(CERTIFICATES, [refs]);
    return new Map(
      rows.map((row) => [
        row.id,
        { type: "certificate", members: issuedCertificate(parseIssued(row)), issuedAt: row.issued_at },
      ]),
    );
  },
  async proof(ask, refs) {
    const { rows } = await ask<{ certificate: string; document: unknown; published_at: Date }>(PROOFS, [refs]);
    return new Map(
      rows.map(({ certificate, document, published_at: publishedAt }) => [
        certificate,
        { type: "proof", document, publishedAt },
      ]),
    );
  },
};

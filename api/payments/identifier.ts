import { createHash } from "node:crypto";

/** As long as a SHA-256 in base64url. */
const STORED_LENGTH = 43;

/**
 * A payment identifier as the journal stores it. Identifiers are only ever compared, and every refused payment leaves
 * one: of a long one, its digest is enough.
 */
export const storedIdentifier = (id: string | null): string | null =>
  id === null || id.length <= STORED_LENGTH ? id : createHash("sha256").update(id).digest("base64url");

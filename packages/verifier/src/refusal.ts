/** The reason why a document is not valid. Codes are stable; the text next to them is for people. */
export type RefusalCode =
  | "malformed_json"
  | "duplicate_key"
  | "malformed_document"
  | "malformed_proof"
  | "issuer_mismatch"
  | "algorithm_not_allowed"
  | "critical_header"
  | "payload_not_detached"
  | "malformed_jws"
  | "unknown_key"
  | "jws_mismatch"
  | "proof_value_mismatch"
  | "inclusion_mismatch"
  | "consistency_mismatch"
  | "malformed_note"
  | "malformed_vkey"
  | "malformed_checkpoint"
  | "note_signature_mismatch"
  | "note_not_signed"
  | "unsupported_signature_type"
  | "malformed_log_proof"
  | "malformed_policy"
  | "unknown_log"
  | "quorum_not_met"
  | "malformed_entry"
  | "entry_mismatch";

/** Thrown inside the library only: `verifyDocument` turns it into a report. */
export class Refusal extends Error {
  readonly code: RefusalCode;

  constructor(code: RefusalCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

/**
 * A mistake of the caller rather than a fault of the document: an invalid key set, issuer, or address, or one that
 * cannot be read.
 */
export class InputError extends Error {}

/** Runs a parser on the caller's input. @throws InputError with this explanation if the parser refuses it */
export function parseInput<T>(parse: () => T, explain: (reason: string) => string): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new InputError(explain(error.message));
  }
}

/** Returns untrusted text, truncated and made safe for a terminal. */
export const quote = (value: unknown): string =>
  (JSON.stringify(value) ?? "missing")
    .slice(0, 120)
    .replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The types of entries in the service's log (docs/log.md). */
export const ENTRY_TYPES = [
  "certificate",
  "reversal",
  "proof",
  "seller_certificate",
  "seller_correction",
  "verdict",
  "correction",
  "evaluation",
  "contest_answer",
  "policy",
  "score_version",
  "signing_key",
] as const;
export type EntryType = (typeof ENTRY_TYPES)[number];

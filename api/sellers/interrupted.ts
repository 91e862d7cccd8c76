import { evidenceDigest, evidenceOf } from "./evidence.ts";
import type { NewResult } from "./exam-store.ts";
import { QUOTE_MINUTES } from "./products.ts";

/** Why an exam ended without a result where its buyer, the seller, may have caused it: nothing is paid back. */
const UNPAID_ENDS = {
  broke: "Something broke before the end. Nothing is said about the seller, and nothing is paid back.",
  withdrawn:
    "The line that names the buyer was gone from the origin's file when the exam began, so nothing was asked of the seller and nothing is paid back.",
  stale: `The exam began more than ${QUOTE_MINUTES} minutes after its order, and the seller no longer quoted what it had. Nothing is said about the seller, and nothing is paid back.`,
} as const;
const OURS =
  "Our chain, our network, our account or our queue kept this exam from being held. Nothing is said about the seller, and";
const OWED = {
  refund: `${OURS} the buyer gets back what it cost.`,
  another: `${OURS} it may be taken again.`,
} as const;

interface Given {
  readonly runs: number;
  readonly beganAt: Date;
  readonly endedAt: Date;
  /** What we owe, for an end of our making. */
  readonly end: keyof typeof OWED | keyof typeof UNPAID_ENDS;
}

const isOwed = (end: Given["end"]): end is keyof typeof OWED => end in OWED;

/** Nothing was seen to its end, so there is nothing to show but the end itself. */
export function interrupted({ end, ...times }: Given): NewResult {
  const evidence = evidenceOf({ exchanges: [], settlements: [] }, () => false);
  return {
    ...times,
    outcome: "interrupted",
    level: null,
    isPublic: false,
    note: isOwed(end) ? OWED[end] : UNPAID_ENDS[end],
    checks: [],
    evidence,
    evidenceSha256: evidenceDigest(evidence),
    spent: null,
    settlements: [],
    validUntil: null,
    owes: isOwed(end) ? end : undefined,
  };
}

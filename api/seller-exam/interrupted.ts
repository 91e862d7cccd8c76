import { evidenceDigest, evidenceOf } from "./evidence.ts";
import type { NewResult } from "./exam-store.ts";

const INTERRUPTED = "Payments were signed, and something broke before the end. Nothing is said about the seller.";
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
  readonly owes: NewResult["owes"];
}

/** Nothing was seen to its end, so there is nothing to show but the end itself. */
export function interrupted({ owes, ...times }: Given): NewResult {
  const evidence = evidenceOf({ exchanges: [], settlements: [] }, () => false);
  return {
    ...times,
    outcome: "interrupted",
    level: null,
    isPublic: false,
    note: owes === undefined ? INTERRUPTED : OWED[owes],
    checks: [],
    evidence,
    evidenceSha256: evidenceDigest(evidence),
    spent: null,
    settlements: [],
    validUntil: null,
    owes,
  };
}

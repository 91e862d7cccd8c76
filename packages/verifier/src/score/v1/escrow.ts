import { pointsIn, REFUND_PENALTY, RELEASE_BANDS } from "./bands.ts";
import type { ScoreFacts } from "./facts.ts";
import type { Fact, Judged } from "./record.ts";

/** Releases to the wallet as merchant, minus refunds against it; negative if the refunds outweigh. */
export function judgeEscrow({ chain: { escrow } }: ScoreFacts): Judged {
  const { release_payers: payers, last_release_tx, refunds_against: refunds, last_refund_tx } = escrow;
  const taken = Math.min(refunds * REFUND_PENALTY.each, REFUND_PENALTY.most);
  const facts: Fact[] = [];
  if (last_release_tx !== null) facts.push({ kind: "releases", counts: true, payers, tx: last_release_tx });
  if (last_refund_tx !== null) facts.push({ kind: "refunds", counts: true, refunds, tx: last_refund_tx });
  return { points: pointsIn(RELEASE_BANDS, payers) - taken, facts };
}

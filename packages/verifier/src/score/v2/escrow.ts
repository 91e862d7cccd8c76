import { pointsIn } from "../v1/bands.ts";
import type { Judged } from "../v1/record.ts";
import { REFUNDS, RELEASE_BANDS } from "./bands.ts";
import type { ScoreFacts } from "./facts.ts";
import type { OutcomeFact } from "./record.ts";

/** Buyers with releases, minus the share of refunds; negative if that outweighs. */
export function judgeEscrow({ chain: { escrow } }: ScoreFacts): Judged<OutcomeFact> {
  const { buyers, release_days, last_release_tx, refunded_buyers, refund_days, last_refund_tx } = escrow;
  const percent = refund_days === 0 ? 0 : Math.floor((100 * refund_days) / (release_days + refund_days));
  const taken = refunded_buyers < REFUNDS.buyers ? 0 : pointsIn(REFUNDS.bands, percent);
  const facts: OutcomeFact[] = [];
  if (last_release_tx !== null)
    facts.push({ kind: "releases", counts: true, buyers, days: release_days, tx: last_release_tx });
  if (last_refund_tx !== null) {
    const refunded = { buyers: refunded_buyers, days: refund_days, percent, tx: last_refund_tx };
    facts.push({ kind: "refunds", counts: taken > 0, ...refunded });
  }
  return { points: pointsIn(RELEASE_BANDS, buyers) - taken, facts };
}

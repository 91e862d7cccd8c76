import { pointsIn, REFUNDS, RELEASE_BANDS } from "./bands.ts";
import type { ScoreFacts, SellerExam } from "./facts.ts";
import { type Fact, inTransaction, type Judged } from "./record.ts";

/**
 * Scores buyers with releases, minus the share of refunds; negative if refunds outweigh them. Exams are listed and
 * never count.
 */
export function judgeEscrow({ as_of, chain: { escrow }, seller_exams }: ScoreFacts): Judged {
  const { buyers, release_days, last_release_tx, refunded_buyers, refund_days, last_refund_tx } = escrow;
  const percent = refund_days === 0 ? 0 : Math.floor((100 * refund_days) / (release_days + refund_days));
  const taken = refunded_buyers < REFUNDS.buyers ? 0 : pointsIn(REFUNDS.bands, percent);
  const facts: Fact[] = [];
  if (last_release_tx !== null)
    facts.push({ kind: "releases", counts: true, buyers, days: release_days, ...inTransaction(last_release_tx) });
  if (last_refund_tx !== null) {
    const refunded = { buyers: refunded_buyers, days: refund_days, percent, ...inTransaction(last_refund_tx) };
    facts.push({ kind: "refunds", counts: taken > 0, ...refunded });
  }
  const exams = seller_exams.map((exam) => examFact(exam, as_of));
  return { points: pointsIn(RELEASE_BANDS, buyers) - taken, facts: [...facts, ...exams] };
}

const examFact = ({ id: _, ...exam }: SellerExam, asOf: string): Fact => ({
  kind: "seller_exam",
  counts: false,
  fresh: asOf < exam.valid_until,
  ...exam,
});

import type { ScoreFactsOf, TransactionHash } from "../v1/facts.ts";

/**
 * Everything a score is made of, as in version 1 but for two things. A hold in an escrow is a payment that its payer
 * authorized, to the merchant; a payee has also `returned` what it has not been paid of such holds. And `EscrowFacts`.
 */
export type ScoreFacts = ScoreFactsOf<EscrowFacts>;

/**
 * What the escrow contracts' events of the window say about the wallet as merchant. Only payments from `OUTCOME_FLOOR`
 * on, and none by the wallet itself or by one that it funded.
 *
 * Payers with the same largest funder at that moment are one buyer, and so are all those whose funder is not known. A
 * buyer-day is a UTC day on which a buyer has at least one such outcome, however many.
 */
export interface EscrowFacts {
  /**
   * Buyers with a payment that was released to the wallet. Not those that have the wallet's own largest funder: it may
   * pay both sides.
   */
  readonly buyers: number;
  /** Their buyer-days. */
  readonly release_days: number;
  /** A release of the last of these days; null if there is none. */
  readonly last_release_tx: TransactionHash | null;
  /**
   * Buyers with a payment to the wallet that a verdict refunded. Refunds by the clock do not count: anyone may hold for
   * anyone and let it lapse. Nor do those of input that the merchant refused.
   */
  readonly refunded_buyers: number;
  /** Their buyer-days. */
  readonly refund_days: number;
  /** A refund of the last of these days; null if there is none. */
  readonly last_refund_tx: TransactionHash | null;
}

import type { Time } from "../v1/facts.ts";
import type { ScoreFacts as ScoreFactsV3 } from "../v3/facts.ts";

/** Everything a score is made of, as in version 3, and what exams of sellers say of the wallet that they paid. */
export interface ScoreFacts extends ScoreFactsV3 {
  /**
   * The newest PASS and the newest FAIL among the exams that count of the sellers who are paid at the wallet: of each
   * request the newest one, neither withdrawn nor reversed, while it is fresh. A FAIL is told only if the wallet itself
   * signed for the exam. In any order.
   */
  readonly seller_exams: readonly SellerExam[];
}

export interface SellerExam {
  readonly id: string;
  /** Its public page. */
  readonly url: string;
  /** Scheme, host and port of the seller. */
  readonly origin: string;
  readonly result: "pass" | "fail";
  /** Null with a FAIL. */
  readonly level: "full" | "safe" | null;
  /** Who consented: the origin, by a file, or the wallet, by its signature. */
  readonly control: "file" | "signature";
  readonly issued_at: Time;
  /** It is fresh until this instant, exclusive. */
  readonly valid_until: Time;
}

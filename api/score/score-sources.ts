import type { ChainReading, Product, SellerExam } from "../../packages/verifier/src/score/facts.ts";
import type { Certificate } from "../certificates/certificate.ts";
import type { Address } from "../platform/wallet.ts";

/** What the score reads from the chain. */
export interface ScoreIndex {
  /**
   * One reading per wallet, in the given order, all after the same block and as of the same instant: `now`, or that
   * block's time if later. Null while the index is unavailable, or more than 60 seconds behind `now`.
   */
  read(wallets: readonly Address[], now: Date): Promise<readonly ChainReading[] | null>;
}

/** A certificate of a test the score considers. */
export interface ScoredCertificate extends Pick<Certificate, "id" | "result" | "issuedAt" | "validUntil"> {
  readonly product: Product;
}

/** What the score reads from the service's own certificates. */
export interface ScoreCertificates {
  /** For each wallet, in the given order: the newest certificate per product and result that is not reversed. */
  newest(wallets: readonly Address[]): Promise<readonly (readonly ScoredCertificate[])[]>;
}

/** An exam of a seller who is paid at the wallet. */
export interface ScoredExam extends Omit<SellerExam, "url" | "issued_at" | "valid_until"> {
  readonly issuedAt: Date;
  readonly validUntil: Date;
}

/** What the score reads from exams of sellers. */
export interface ScoreExams {
  /** For each wallet, in the given order: what `seller_exams` of its facts are. */
  newest(wallets: readonly Address[], now: Date): Promise<readonly (readonly ScoredExam[])[]>;
}

import type { ChainReading, Product } from "../../packages/verifier/src/score/v1/facts.ts";
import type { Certificate } from "../certification/certificate.ts";
import type { Address } from "../kernel/wallet.ts";

/** What the score reads of the chain. */
export interface ScoreIndex {
  /**
   * One reading a wallet, in the order given, all after the same block and as of the same instant (`now`, or that block's
   * time when it is later). Null while the index is unavailable, or more than 60 seconds behind `now`.
   */
  read(wallets: readonly Address[], now: Date): Promise<readonly ChainReading[] | null>;
}

/** A certificate of a test that the score looks at. */
export interface ScoredCertificate extends Pick<Certificate, "id" | "result" | "issuedAt" | "validUntil"> {
  readonly product: Product;
}

/** What the score reads of the service's own certificates. */
export interface ScoreCertificates {
  /** For each wallet, in the order given: of each product and result the newest that is not reversed. */
  newest(wallets: readonly Address[]): Promise<readonly (readonly ScoredCertificate[])[]>;
}

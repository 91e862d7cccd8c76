import type { TransactionHash } from "../v1/facts.ts";
import type { AssessmentOf, Inputs, WalletFact } from "../v1/record.ts";
import type { SCORE_VERSION } from "./bands.ts";
import type { EscrowFacts } from "./facts.ts";

/** Where the points of `escrow_outcomes` come from. `counts`: it adds or removes points. */
export type OutcomeFact = {
  readonly counts: boolean;
  readonly buyers: number;
  /** Buyer-days. */
  readonly days: number;
  /** One of the last of them. */
  readonly tx: TransactionHash;
} & (
  | { readonly kind: "releases" }
  /** `percent` of all buyer-days, rounded down. */
  | { readonly kind: "refunds"; readonly percent: number }
);

/** A whole score record except the hash of its facts. */
export type Assessment = AssessmentOf<typeof SCORE_VERSION, WalletFact | OutcomeFact>;

/** The risk score record as served. */
export type ScoreDocument = Assessment & Inputs<EscrowFacts>;

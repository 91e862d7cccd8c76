import type { Account, ChainFactsOf, PayeeFact as PayeeFactV1, ScoreFactsOf, TransactionHash } from "../v1/facts.ts";
import type { EscrowFacts } from "../v2/facts.ts";

export type { EscrowFacts };

/**
 * Everything a score is made of, as in version 2 but for scope `selective`: there the index has authorised payments
 * only, and who funded a wallet is looked up in the logs of USDC (`Lookup`).
 */
export type ScoreFacts = Omit<ScoreFactsOf<EscrowFacts>, "chain"> & { readonly chain: ChainFacts };

export interface ChainFacts extends Omit<ChainFactsOf<EscrowFacts>, "scope" | "payees"> {
  readonly scope: "full" | "authorised" | "selective";
  /** Null in other scopes, and if the wallet has no payee whose payers matter. */
  readonly lookup: Lookup | null;
  /** At most 64, as in version 1. */
  readonly payees: readonly PayeeFact[];
}

/**
 * What was looked up: all transfers of USDC to the wallet, and to payers of its payees, from `first_block` to `block`.
 * Newer ones count as unknown. `largest_funder` and `returned` are as of that block.
 */
export interface Lookup {
  /** A final block, and its hash. */
  readonly block: number;
  readonly block_hash: TransactionHash;
  /** The block after which the index was asked for the payers. */
  readonly as_of_block: number;
}

export interface PayeeFact extends PayeeFactV1 {
  /**
   * In scope `selective`, those of its (at most 16) newest payers that were looked up, in any order; none if its payers
   * do not matter, or it became a payee later. Null in other scopes. `other_funders` is the number of their distinct
   * funders, `unfunded_payers` that of all other payers.
   */
  readonly payers: readonly PayerFact[] | null;
}

export interface PayerFact {
  readonly payer: Account;
  /** The block in which its payments to the payee reached 0.05 USD, or that of the look-up if that is earlier. */
  readonly block: number;
  /**
   * Who had sent it the most USDC in total by the end of that block (the first to reach it wins ties); null if nobody
   * had, or if more than 10,000 transfers would have to be read.
   */
  readonly funder: Account | null;
}

/** What the index and the look-ups provide; the service adds the rest. */
export type ChainReading = Pick<ScoreFacts, "as_of" | "as_of_block" | "chain">;

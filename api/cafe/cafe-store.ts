import type { Transaction } from "../platform/db/transaction.ts";
import type { Address } from "../platform/wallet.ts";
import type { Toast } from "./receipt.ts";

/** A paid order. */
export interface ServedOrder {
  /** Of the receipt. */
  readonly id: string;
  readonly payer: Address;
  /** Of the buyer of a round; null for other items. */
  readonly round: { readonly nickname: string } | null;
  /** Writes the receipt, once it is known whose round pays for it. */
  readonly write: (toast: Toast | null) => string;
}

export interface OpenRound {
  readonly nickname: string;
  readonly left: number;
}

export interface CafeStore {
  /**
   * Stores a receipt, counts it against the oldest open round of another wallet, and opens the buyer's own. A receipt
   * that already exists is returned as it was written.
   */
  serve(order: ServedOrder, transaction: Transaction): Promise<string>;
  /** Rounds with receipts left, oldest first. */
  openRounds(limit: number): Promise<readonly OpenRound[]>;
  served(): Promise<number>;
}

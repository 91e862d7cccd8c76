import type { Transaction } from "../kernel/transaction.ts";
import type { Address } from "../kernel/wallet.ts";
import type { Item } from "./menu.ts";
import type { Toast } from "./receipt.ts";

/** The queue that orders complete in: a round's receipts are counted without gap or surplus. */
export const CAFE_QUEUE = "cafe";

/** An order that is paid. */
export interface Served {
  /** Of the receipt. */
  readonly id: string;
  readonly item: Item;
  readonly payer: Address;
  /** Of the buyer of a round; null for anything else. */
  readonly round: { readonly nickname: string } | null;
  /** Writes the receipt, once it is known whose round it is on. */
  readonly write: (toast: Toast | null) => string;
}

export interface OpenRound {
  readonly nickname: string;
  readonly left: number;
}

export interface CafeStore {
  /**
   * Keeps a receipt, counts it against the oldest open round of somebody else, and opens the buyer's own. Orders come one after
   * the other, in `CAFE_QUEUE`. A receipt that is there already is the answer as it was written.
   */
  serve(order: Served, transaction: Transaction): Promise<string>;
  /** Rounds that still stand on receipts to come, oldest first. */
  openRounds(limit: number): Promise<readonly OpenRound[]>;
  served(): Promise<number>;
}

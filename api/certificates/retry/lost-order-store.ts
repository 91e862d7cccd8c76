import type { Statement, Transaction } from "../../platform/db/transaction.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Sender } from "../sessions/session.ts";
import type { Result } from "../certificate.ts";
import type { LostOrder, Way } from "./lost-order.ts";

/** What the journal knows the payment of such an order by: two authorizations for it are told apart. */
export const paymentIdOf = (session: string): string => `challenge:${session}/lost`;

/** The orders whose answers get lost, one for each session. Every mark is set once, and none is taken back. */
export interface LostOrderStore {
  /** The write that adds one. */
  adding(session: string, way: Way): Statement;
  of(session: string): Promise<LostOrder>;
  /** The write that records its settled payment. */
  settling(session: string, paid: { readonly nonce: Hex; readonly transaction: Hex }): Statement;
  /** Its answer is about to be lost, on the way to this sender. */
  lose(session: string, at: { readonly sender: Sender; readonly now: Date }): Promise<void>;
  /**
   * The same authorization has come again. Once the session's token is shared, only that of the sender who lost the
   * answer counts: a settled payment's header can be rebuilt from the chain.
   */
  sendAgain(session: string, at: { readonly sender: Sender; readonly now: Date }): Promise<void>;
  /** Another authorization came that convicts nobody. */
  second(session: string, now: Date): Promise<void>;
  /** The session whose lost order this authorization paid; null if there is none. */
  paidBy(payer: Address, nonce: Hex): Promise<string | null>;
  /** Someone asked whether it has settled. It counts if the one who lost the answer did. */
  ask(session: string, at: { readonly sender: Sender; readonly now: Date }): Promise<void>;
  /**
   * Sets the verdict unless there is one. A FAIL comes within the window, from the sender who lost the answer if the
   * token is shared; a PASS after the window. Returns how many rows changed (0 or 1).
   */
  conclude(
    session: string,
    given: { readonly verdict: Result; readonly sender: Sender | null; readonly now: Date },
    transaction: Transaction,
  ): Promise<number>;
}

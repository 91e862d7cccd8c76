import type { Statement, Transaction } from "../../platform/db/transaction.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Result } from "../certificate.ts";
import type { BehaviouralProduct } from "../products.ts";
import type { Caller, Challenge, Sender, Session } from "./session.ts";

/** The sessions of behavioural tests. Rows store a token only as its SHA-256. */
export interface SessionStore {
  /** The write that adds one. */
  adding(session: Session, tokenSha256: Buffer): Statement;
  /**
   * With a token, that session. Without one, the wallet's newest open session, else its newest with a verdict, else its
   * newest.
   */
  find(
    product: BehaviouralProduct,
    wallet: Address,
    asked: { readonly tokenSha256: Buffer | null; readonly now: Date },
  ): Promise<Session | null>;
  byId(id: string): Promise<Session | null>;
  /**
   * Serves the challenge that `choose` returns, under a lock, and returns the updated session; null if it returns none.
   */
  serve(
    id: string,
    at: Caller & { readonly now: Date },
    choose: (session: Session) => Challenge | null,
  ): Promise<{ readonly session: Session; readonly challenge: Challenge } | null>;
  /** The write that records the settled control. */
  settling(id: string, control: { readonly nonce: Hex; readonly transaction: Hex }): Statement;
  /**
   * Sets the verdict unless there is one. Nor does it if the verdict comes from the wallet's door while the wallet uses a
   * token, or if it is a FAIL from elsewhere, as `isElsewhere` says. Returns how many rows changed (0 or 1).
   */
  conclude(
    id: string,
    given: Caller & { readonly verdict: Result; readonly now: Date },
    transaction: Transaction,
  ): Promise<number>;
  /** Notes that the session's token is told to this sender: from another one than its own on, it is shared. */
  tell(id: string, sender: Sender): Promise<void>;
  /** Ends an open session without a verdict. */
  end(id: string, now: Date): Promise<void>;
  /** Runs work in one transaction. */
  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
}

/** Addresses for single sessions; their keys never leave this port. */
export interface Decoys {
  /** By one of a session's `decoyNames`. */
  addressOf(name: string): Address;
}

import type { Transaction } from "../../kernel/transaction.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Result } from "../certificate.ts";
import type { BehaviouralProduct } from "../products.ts";
import type { Challenge, Door, Session } from "./session.ts";

/** The sessions of behavioural tests; their rows know a token by its SHA-256. */
export interface SessionStore {
  add(session: Session, tokenSha256: Buffer, transaction: Transaction): Promise<void>;
  /** With a token that session; without one the wallet's newest open session, else its newest one with a verdict, else its newest one. */
  find(
    product: BehaviouralProduct,
    wallet: Address,
    asked: { readonly tokenSha256: Buffer | null; readonly now: Date },
  ): Promise<Session | null>;
  byId(id: string): Promise<Session | null>;
  /** Serves the challenge that `choose` names, under a lock, and answers the session as it then is; null when it is not open any more. */
  serve(
    id: string,
    at: { readonly door: Door; readonly now: Date },
    choose: (session: Session) => Challenge | null,
  ): Promise<{ readonly session: Session; readonly challenge: Challenge } | null>;
  /** Notes the settled control; answers the session. */
  settle(
    id: string,
    control: { readonly nonce: Hex; readonly transaction: Hex },
    transaction: Transaction,
  ): Promise<void>;
  /** Gives the verdict unless there is one; answers how many rows it changed (0 or 1). */
  conclude(
    id: string,
    given: { readonly verdict: Result; readonly now: Date },
    transaction: Transaction,
  ): Promise<number>;
  /** Runs work in one transaction. */
  inTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
}

/** Addresses of single sessions; their keys never leave this port. */
export interface Decoys {
  addressOf(sessionId: string): Address;
}

import type { Transaction } from "../kernel/transaction.ts";
import type { Verdict } from "./policy/policy.ts";
import type { VerdictRequest } from "./request.ts";

/** The queue that verdicts are written in: the log has one end, and each verdict names the one before it. */
export const VERDICT_QUEUE = "verdict log";

/** Where a verdict stands in the log, in which each names the one before it. */
export interface Place {
  /** From 1, without gaps. */
  readonly index: number;
  /** Of the whole document before this one; null for the first. */
  readonly previousSha256: string | null;
}

/** The verdict that a correction takes the place of. */
export interface Superseded {
  readonly id: string;
  readonly sha256: string;
  /** What the arbiter had got wrong. */
  readonly reason: string;
}

/** A verdict that is to be written into the log. */
export interface NewVerdict {
  readonly id: string;
  readonly supersedes: string | null;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** Signs the document for its place. */
  readonly signAt: (place: Place) => { readonly document: string; readonly sha256: string };
}

/** A verdict as it is kept for ever. */
export interface StoredVerdict {
  readonly id: string;
  readonly index: number;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** The signed document, byte for byte. */
  readonly document: string;
  readonly sha256: string;
  readonly supersedes: string | null;
  readonly supersededBy: string | null;
}

export interface LogEntry extends Pick<StoredVerdict, "id" | "index" | "outcome" | "sha256" | "issuedAt"> {
  readonly category: string;
  readonly supersedes: string | null;
}

export interface VerdictTotals {
  readonly release: number;
  readonly refund: number;
  readonly escalate: number;
}

export interface VerdictStore {
  get(id: string): Promise<StoredVerdict | null>;
  /**
   * Writes a verdict at the end of the log, in a transaction that has its turn in `VERDICT_QUEUE`. When its id is there already,
   * nothing is written and that one is the answer.
   */
  append(verdict: NewVerdict, transaction: Transaction): Promise<StoredVerdict>;
  /** Runs work in a transaction of its own that has its turn in `VERDICT_QUEUE`. */
  inTurn<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Newest first, those before an index. */
  log(page: { readonly before: number | null; readonly limit: number }): Promise<readonly LogEntry[]>;
  /** The newest corrections. */
  corrections(limit: number): Promise<readonly LogEntry[]>;
  totals(): Promise<VerdictTotals>;
}

import type { Transaction } from "../kernel/transaction.ts";
import type { TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";
import type { VerdictRequest } from "./request.ts";

/** The queue verdicts are written in: the log has one end, and each verdict names the previous one. */
export const VERDICT_QUEUE = "verdict log";

/** A verdict's place in the log, where each names the previous one. */
export interface Place {
  /** From 1, without gaps. */
  readonly index: number;
  /** Of the whole previous document; null for the first. */
  readonly previousSha256: string | null;
}

/** The verdict that a correction replaces. */
export interface Superseded {
  readonly id: string;
  readonly sha256: string;
  /** What the arbiter got wrong. */
  readonly reason: string;
}

/** A verdict to be appended to the log. */
export interface NewVerdict {
  readonly id: string;
  readonly supersedes: string | null;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** Signs the document for its place in the log. */
  readonly signAt: (place: Place) => { readonly document: string; readonly sha256: string };
  /** The transfer that it decides. Only one verdict can, with its corrections; any other is what `decidedBefore` returns. */
  readonly transfer?: TransferKey & { readonly decidedBefore: (verdict: string) => NewVerdict };
}

/** A verdict as stored permanently. */
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
   * Appends a verdict to the log, in a transaction that holds `VERDICT_QUEUE`. If its id is already there, writes
   * nothing and returns that one. The transfer that it decides becomes its own, or it is the one that says who has it.
   */
  append(verdict: NewVerdict, transaction: Transaction): Promise<StoredVerdict>;
  /** Runs work in its own transaction, holding `VERDICT_QUEUE`. */
  inTurn<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Newest first, before the given index. */
  log(page: { readonly before: number | null; readonly limit: number }): Promise<readonly LogEntry[]>;
  /** The newest corrections. */
  corrections(limit: number): Promise<readonly LogEntry[]>;
  totals(): Promise<VerdictTotals>;
}

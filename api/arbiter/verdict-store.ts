import type { Statement, Transaction } from "../platform/db/transaction.ts";
import type { Address } from "../platform/wallet.ts";
import type { TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";
import type { VerdictRequest } from "./request.ts";

/** The verdict that a correction replaces. */
export interface Superseded {
  readonly id: string;
  readonly sha256: string;
  /** What the arbiter got wrong. */
  readonly reason: string;
}

/** A verdict as signed. */
export interface SignedVerdict {
  readonly id: string;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** The signed document, byte for byte. */
  readonly document: string;
  readonly sha256: string;
  readonly supersedes: string | null;
}

/** A verdict to be stored. */
export interface NewVerdict extends SignedVerdict {
  /** The transfer that it decides. Only one verdict can, with its corrections; any other is what `decidedBefore` returns. */
  readonly transfer?: TransferKey & { readonly decidedBefore: (verdict: string) => Promise<SignedVerdict> };
}

/** A verdict as stored permanently. */
export interface StoredVerdict extends SignedVerdict {
  readonly supersededBy: string | null;
}

/** A line of the list of verdicts. */
export interface ListedVerdict extends Pick<SignedVerdict, "id" | "outcome" | "sha256" | "issuedAt" | "supersedes"> {
  readonly category: string;
  /** The wallet that paid for it, or for the verdict that it corrects. */
  readonly claimant: Address | null;
}

export interface VerdictTotals {
  readonly release: number;
  readonly refund: number;
  readonly escalate: number;
}

export interface VerdictStore {
  get(id: string): Promise<StoredVerdict | null>;
  /** The write that stores a verdict. */
  adding(verdict: SignedVerdict): Statement;
  /** Stores a verdict. The transfer that it decides becomes its own, or what is stored says which verdict decided it. */
  add(verdict: NewVerdict, transaction: Transaction): Promise<SignedVerdict>;
  /** Stores a verdict in a transaction of its own, unless one with its id is stored already. Returns the stored one. */
  record(verdict: NewVerdict): Promise<StoredVerdict>;
  /** Newest first, before the verdict with the given id. */
  list(page: { readonly before: string | null; readonly limit: number }): Promise<readonly ListedVerdict[]>;
  /** The newest corrections. */
  corrections(limit: number): Promise<readonly ListedVerdict[]>;
  totals(): Promise<VerdictTotals>;
}

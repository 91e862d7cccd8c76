import type { Statement, Transaction } from "../db/transaction.ts";

/** An answer that is stored, sent, and replayed as the same bytes every time. */
export interface StoredAnswer {
  readonly status: number;
  /** JSON text in UTF-8. */
  readonly body: Uint8Array;
  /** Path of the public record the sale created, if any. */
  readonly location: string | null;
}

/** A sale whose answer depends on what the transaction that stores it finds. */
export interface TransactedCompletion {
  /** It may run again after a failure; only what commits counts. */
  readonly complete: (transaction: Transaction) => Promise<StoredAnswer>;
}

/** A sale whose answer is known before anything is stored. */
export interface KnownCompletion {
  readonly answer: StoredAnswer;
  /** What is stored with it. */
  readonly writes: readonly Statement[];
}

/**
 * The end of a sale. The transaction that marks the payment as fulfilled stores it, so the records, the answer and the
 * payment are stored together or not at all.
 */
export type Completion = KnownCompletion | TransactedCompletion;

/** The answer to a payment that is withheld, and what is recorded with it. */
export interface RecordedAnswer {
  readonly answer: StoredAnswer;
  readonly record: (transaction: Transaction) => Promise<void>;
}

/** Wraps a document as an answer. */
export const jsonAnswer = (
  document: unknown,
  { status = 200, location = null }: { readonly status?: number; readonly location?: string | null } = {},
): StoredAnswer => ({ status, body: Buffer.from(JSON.stringify(document)), location });

/** Ends a sale with an answer that is already known, and with what is stored beside it. */
export const answered = (answer: StoredAnswer, writes: readonly Statement[] = []): Completion => ({ answer, writes });

import type { Transaction } from "./transaction.ts";

/** An answer that is stored, sent, and replayed as the same bytes every time. */
export interface StoredAnswer {
  readonly status: number;
  /** JSON text in UTF-8. */
  readonly body: Uint8Array;
  /** Path of the public record the sale created, if any. */
  readonly location: string | null;
}

/**
 * The end of a sale. `complete` runs in the transaction that marks the payment as fulfilled, so the record, the answer
 * and the payment are stored together or not at all. It may run again after a failure; only what commits counts.
 */
export interface Completion {
  /** Sales with the same queue complete one at a time, across processes: a log has only one end. */
  readonly queue?: string;
  readonly complete: (transaction: Transaction) => Promise<StoredAnswer>;
}

/** An answer known before anything is recorded. */
export interface RecordedAnswer {
  readonly answer: StoredAnswer;
  readonly record: (transaction: Transaction) => Promise<void>;
}

/** Wraps a document as an answer. */
export const jsonAnswer = (
  document: unknown,
  { status = 200, location = null }: { readonly status?: number; readonly location?: string | null } = {},
): StoredAnswer => ({ status, body: Buffer.from(JSON.stringify(document)), location });

/** Ends a sale whose answer is already known. */
export const recorded = ({ answer, record }: RecordedAnswer): Completion => ({
  async complete(transaction) {
    await record(transaction);
    return answer;
  },
});

/** Ends a sale that stores nothing but its answer. */
export const answered = (answer: StoredAnswer): Completion => ({ complete: async () => answer });

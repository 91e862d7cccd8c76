import type { Transaction } from "./transaction.ts";

/** An answer as it is stored, sent, and sent again on a replay: the same bytes every time. */
export interface StoredAnswer {
  readonly status: number;
  /** JSON text in UTF-8. */
  readonly body: Uint8Array;
  /** Path of the public record that the sale made, if any. */
  readonly location: string | null;
}

/**
 * The end of a sale. `complete` runs in the transaction that marks the payment as fulfilled, so that what the sale records, its
 * answer and its payment are stored together or not at all. It may run again after a failure; only what commits counts.
 */
export interface Completion {
  /** Sales that name the same queue complete one after another, in whatever process: a log has one end. */
  readonly queue?: string;
  readonly complete: (transaction: Transaction) => Promise<StoredAnswer>;
}

/** An answer that is known before anything is recorded. */
export interface RecordedAnswer {
  readonly answer: StoredAnswer;
  readonly record: (transaction: Transaction) => Promise<void>;
}

/** The answer of a document. */
export const jsonAnswer = (
  document: unknown,
  { status = 200, location = null }: { readonly status?: number; readonly location?: string | null } = {},
): StoredAnswer => ({ status, body: Buffer.from(JSON.stringify(document)), location });

/** The end of a sale whose answer is known beforehand. */
export const recorded = ({ answer, record }: RecordedAnswer): Completion => ({
  async complete(transaction) {
    await record(transaction);
    return answer;
  },
});

/** The end of a sale that leaves no record but its answer. */
export const answered = (answer: StoredAnswer): Completion => ({ complete: async () => answer });

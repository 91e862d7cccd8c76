import type { Address, Hex } from "../platform/wallet.ts";
import type { createExamWatch } from "./exam-work-store.ts";

/** A payment of a published exam that is not known to be final. */
export interface WatchedPayment {
  readonly exam: string;
  readonly payer: Address;
  readonly nonce: Hex;
  /** Unix seconds. From then on, it cannot be submitted. */
  readonly validBefore: bigint;
}

/** A final block, and which of the given authorizations are used in it. */
export interface FinalView {
  /** Unix seconds. */
  readonly time: bigint;
  readonly used: ReadonlySet<Hex>;
}

export type ExamPaymentsEnd = "final" | "reversed";

/**
 * Returns `final` if all payments of an exam are used in a final block, and `reversed` if one is not and never can be.
 * Otherwise returns null, because another block may still include what a reorganization removed.
 */
export function endOfPayments(payments: readonly WatchedPayment[], { time, used }: FinalView): ExamPaymentsEnd | null {
  const missing = payments.filter(({ nonce }) => !used.has(nonce));
  if (missing.length === 0) return "final";
  return missing.some(({ validBefore }) => validBefore <= time) ? "reversed" : null;
}

export interface WatchParts {
  readonly watched: ReturnType<typeof createExamWatch>;
  readonly finalView: (payments: readonly Pick<WatchedPayment, "payer" | "nonce">[]) => Promise<FinalView>;
}

/**
 * Checks the payments of exams until they are final. A certificate that depends on a reversed payment no longer counts.
 */
export async function watchPayments({ watched, finalView }: WatchParts): Promise<void> {
  const due = await watched.due();
  if (due.length === 0) return;
  const view = await finalView(due);
  for (const [exam, payments] of Map.groupBy(due, (payment) => payment.exam)) {
    const end = endOfPayments(payments, view);
    if (end !== null) await watched.end(exam, end);
  }
}

import type { Address, Hex } from "../platform/wallet.ts";

/** A payment of a published exam that is not known to be final. */
export interface WatchedPayment {
  readonly exam: string;
  readonly payer: Address;
  readonly nonce: Hex;
  /** Unix seconds. From then on nobody can submit it. */
  readonly validBefore: bigint;
}

/** A block that never changes, and which of some authorizations are used in it. */
export interface FinalView {
  /** Unix seconds. */
  readonly time: bigint;
  readonly used: ReadonlySet<Hex>;
}

export type ExamPaymentsEnd = "final" | "reversed";

/** Published exams whose payments are not known to be final. */
export interface WatchedPayments {
  /** Payments of exams that are due to be looked at; nobody else looks at them for a while. */
  due(): Promise<readonly WatchedPayment[]>;
  /** Says what became of an exam's payments, once and for good. */
  end(exam: string, fate: ExamPaymentsEnd): Promise<void>;
}

/**
 * What became of an exam's payments: all of them are used in a final block, or one is not and never can be. Until either
 * is so, another block may hold what a reorganization took: null.
 */
export function fateOf(payments: readonly WatchedPayment[], { time, used }: FinalView): ExamPaymentsEnd | null {
  const missing = payments.filter(({ nonce }) => !used.has(nonce));
  if (missing.length === 0) return "final";
  return missing.some(({ validBefore }) => validBefore <= time) ? "reversed" : null;
}

export interface WatchParts {
  readonly watched: WatchedPayments;
  readonly finalView: (payments: readonly Pick<WatchedPayment, "payer" | "nonce">[]) => Promise<FinalView>;
}

/** Looks at the payments of exams until they are final: a certificate that rests on one that is gone counts no more. */
export async function watchPayments({ watched, finalView }: WatchParts): Promise<void> {
  const due = await watched.due();
  if (due.length === 0) return;
  const view = await finalView(due);
  for (const [exam, payments] of Map.groupBy(due, (payment) => payment.exam)) {
    const fate = fateOf(payments, view);
    if (fate !== null) await watched.end(exam, fate);
  }
}

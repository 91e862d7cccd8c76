import { type FinalView, fateOf, type WatchedPayment, type WatchedPayments } from "./payment-fate.ts";

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

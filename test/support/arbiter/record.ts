import type { Arbiter } from "../../../api/arbiter/arbiter.ts";
import type { Variant } from "../../../api/arbiter/products.ts";
import { reachVerdict, type VerdictOrder, type VerdictParts } from "../../../api/arbiter/reach-verdict.ts";
import { type VerdictRequest, verdictId } from "../../../api/arbiter/request.ts";
import type { StoredVerdict, VerdictStore } from "../../../api/arbiter/verdict-store.ts";
import type { Sale } from "../../../api/kernel/route.ts";

/** Reaches a verdict and writes it at the end of the log, without a sale. */
export async function recordVerdict(
  parts: VerdictParts,
  order: VerdictOrder,
  signal: AbortSignal,
): Promise<StoredVerdict> {
  const verdict = await reachVerdict(parts, order, signal);
  return parts.store.inTurn((transaction) => parts.store.append(verdict, transaction));
}

/** The verdict that a sale buys, completed without a payment in the journal. */
export const deciderOf =
  (arbiter: Arbiter, store: VerdictStore) =>
  async (sale: Sale<VerdictRequest>, variant: Variant): Promise<StoredVerdict> => {
    const { complete } = await arbiter.decide(sale, variant);
    await store.inTurn(complete);
    const stored = await store.get(verdictId(sale.payment));
    if (stored === null) throw new Error("a completed sale has left no verdict");
    return stored;
  };

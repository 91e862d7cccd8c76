import type { Pool } from "pg";
import type { Arbiter } from "../../../api/arbiter/arbiter.ts";
import type { Variant } from "../../../api/arbiter/products.ts";
import { reachVerdict, type VerdictOrder, type VerdictParts } from "../../../api/arbiter/reach-verdict.ts";
import { type VerdictRequest, verdictId } from "../../../api/arbiter/request.ts";
import type { StoredVerdict, VerdictStore } from "../../../api/arbiter/store.ts";
import { inTransaction, transactionOn } from "../../../api/platform/db/connection.ts";
import type { Sale } from "../../../api/platform/http/route.ts";

/** Reaches a verdict and stores it, without a sale. */
export const recordVerdict = async (
  parts: VerdictParts,
  order: VerdictOrder,
  signal: AbortSignal,
): Promise<StoredVerdict> => parts.store.record(await reachVerdict(parts, order, signal));

/** The verdict that a sale buys, completed without a payment in the journal. */
export const deciderOf =
  (arbiter: Arbiter, store: VerdictStore, pool: Pool) =>
  async (sale: Sale<VerdictRequest>, variant: Variant): Promise<StoredVerdict> => {
    const completion = await arbiter.decide(sale, variant);
    await inTransaction(pool, async (client) => {
      const transaction = transactionOn(client);
      if ("complete" in completion) await completion.complete(transaction);
      else for (const { text, values } of completion.writes) await transaction.query(text, values);
    });
    const stored = await store.get(verdictId(sale.payment));
    if (stored === null) throw new Error("a completed sale has left no verdict");
    return stored;
  };

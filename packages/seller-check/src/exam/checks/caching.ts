import { isSuccess, statusOf } from "../exchange.ts";
import { isSharedStorable } from "../shared-cache.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, judged } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** Looks at how the paid answer may be stored, and asks once more without paying. */
export async function checkCaching(visit: Visit, sale: Sale): Promise<CheckResult> {
  const unpaid = await visit.ask();
  const control = sale.answer.headers["cache-control"] ?? "";
  return judged("caching", [
    {
      statement: `A shared cache may not store the paid answer, whose Cache-Control is ${control === "" ? "missing" : control}`,
      holds: !isSharedStorable(visit.resource, sale.answer, Object.keys(sale.payment.headers)),
      exchanges: [sale.exchange.number],
    },
    {
      statement: `An unpaid request after a paid one gets nothing, and got ${statusOf(unpaid)}`,
      holds: unpaid.answer !== null && !isSuccess(unpaid),
      exchanges: [sale.exchange.number, unpaid.number],
    },
  ]);
}

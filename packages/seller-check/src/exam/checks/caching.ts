import { type Exchange, isSuccess, statusOf } from "../exchange.ts";
import { CACHE_FIELDS, isSharedStorable } from "../shared-cache.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, judged } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** Checks how the paid response may be stored, and the response to a later unpaid request. */
export function checkCaching(visit: Visit, sale: Sale, unpaid: Exchange): CheckResult {
  return judged("caching", [
    {
      code: "caching.not_stored",
      statement: `A shared cache may not store the paid answer, whose ${describeHeaders(sale)}`,
      holds: !isSharedStorable(visit.resource, sale.answer, Object.keys(sale.payment.headers)),
      exchanges: [sale.exchange.number],
    },
    {
      code: "caching.unpaid_after",
      statement: `An unpaid request after a paid one is not served (got ${statusOf(unpaid)})`,
      holds: unpaid.answer !== null && !isSuccess(unpaid),
      exchanges: [sale.exchange.number, unpaid.number],
    },
  ]);
}

/** Describes the response's caching headers, `Cache-Control` in any case. */
function describeHeaders({ answer: { headers } }: Sale): string {
  const others = CACHE_FIELDS.filter((name) => name !== "cache-control" && headers[name] !== undefined);
  return [
    `Cache-Control is ${headers["cache-control"] || "missing"}`,
    ...others.map((name) => `${name} is ${headers[name]}`),
  ].join(", ");
}

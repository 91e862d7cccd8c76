import { type Answer, isSuccess, statusOf } from "../exchange.ts";
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
      holds: !isSharedStorable(visit.resource.method, sale.answer),
      exchanges: [sale.exchange.number],
    },
    {
      statement: `An unpaid request after a paid one gets nothing, and got ${statusOf(unpaid)}`,
      holds: unpaid.answer !== null && !isSuccess(unpaid),
      exchanges: [sale.exchange.number, unpaid.number],
    },
  ]);
}

/**
 * Whether a shared cache may store and reuse it (RFC 9111, sections 3 and 4.2.2). A GET without any directive counts: its
 * status is heuristically cacheable, and the payment's header is none that caches know.
 */
function isSharedStorable(method: string, { headers }: Answer): boolean {
  const directives = new Set(
    (headers["cache-control"] ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.trim().split("=")[0]),
  );
  if (["no-store", "private", "no-cache"].some((directive) => directives.has(directive))) return false;
  if (method === "GET") return true;
  return (
    ["public", "max-age", "s-maxage"].some((directive) => directives.has(directive)) || headers.expires !== undefined
  );
}

import { createHash } from "node:crypto";
import { type Exchange, isLater, isSuccess, sameBody, statusOf } from "../exchange.ts";
import type { Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** Copies of one payment that arrive together. */
const COPIES = 10;

/** Sends a settled payment again, then a fresh one ten times at once. */
export async function checkReplay(visit: Visit, terms: Terms, sale: Sale): Promise<CheckResult> {
  const again = await visit.ask(sale.payment.headers);
  const isDelivered = isLater(sale.exchange) && !isLater(again);
  const isNewSale = again.answer !== null && isSuccess(again) && !isDelivered && !sameBody(again.answer, sale.answer);
  const replay: Finding = {
    code: "replay.again",
    statement: `The settled payment is refused or brings the same answer, and got ${statusOf(again)}${isNewSale ? " with another body" : ""}`,
    holds: again.answer !== null && !isNewSale,
    exchanges: [sale.exchange.number, again.number],
  };
  return judged("replay", [replay, ...(await atOnce(visit, terms))]);
}

async function atOnce(visit: Visit, terms: Terms): Promise<readonly Finding[]> {
  const payment = await visit.pay(terms);
  if (payment === null) return [];
  const copies = await Promise.all(Array.from({ length: COPIES }, () => visit.ask(payment.headers)));
  const exchanges = copies.map(({ number }) => number);
  const served = copies.filter(isSuccess);
  // One promise may become one result: of either there is one.
  const different = (copies: readonly Exchange[]) => new Set(copies.map(digest)).size;
  const brought = Math.max(different(served.filter(isLater)), different(served.filter((copy) => !isLater(copy))));
  return [
    {
      code: "replay.copies_served",
      statement: `${COPIES} copies of one payment at once bring it to at least one result, and got ${tally(copies)}`,
      holds: served.length > 0,
      exchanges,
    },
    {
      code: "replay.copies_one_result",
      statement: `${COPIES} copies of one payment at once bring one result, and brought ${brought}`,
      holds: brought <= 1,
      exchanges,
    },
  ];
}

const digest = ({ answer }: Exchange): string =>
  createHash("sha256")
    .update(answer?.body ?? "")
    .digest("hex");

function tally(copies: readonly Exchange[]): string {
  const counts = new Map<string, number>();
  for (const copy of copies) counts.set(statusOf(copy), (counts.get(statusOf(copy)) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} × ${status}`).join(", ");
}

import { createHash } from "node:crypto";
import { type Exchange, isLater, isSuccess, sameBody, statusOf } from "../exchange.ts";
import type { Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, shownBy } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** The number of copies of one payment that arrive together. */
const COPIES = 10;

/** Sends a settled payment again, then ten copies of a fresh one together. */
export async function checkReplay(visit: Visit, terms: Terms, sale: Sale): Promise<CheckResult> {
  const again = await visit.ask(sale.payment.headers);
  const isDelivered = isLater(sale.exchange) && !isLater(again);
  const isNewSale = again.answer !== null && isSuccess(again) && !isDelivered && !sameBody(again.answer, sale.answer);
  const replay = shownBy(sale.exchange, again)(
    "replay.again",
    `The settled payment is refused or brings the same answer (got ${statusOf(again)}${isNewSale ? " with another body" : ""})`,
    again.answer !== null && !isNewSale,
  );
  return judged("replay", [replay, ...(await concurrently(visit, terms))]);
}

async function concurrently(visit: Visit, terms: Terms): Promise<readonly Finding[]> {
  const payment = await visit.pay(terms);
  if (payment === null) return [];
  const copies = await Promise.all(Array.from({ length: COPIES }, () => visit.ask(payment.headers)));
  const found = shownBy(...copies);
  const served = copies.filter(isSuccess);
  // A promise (202) may become one result, so of either kind there may be only one.
  const different = (copies: readonly Exchange[]) => new Set(copies.map(digest)).size;
  const brought = Math.max(different(served.filter(isLater)), different(served.filter((copy) => !isLater(copy))));
  return [
    found(
      "replay.copies_served",
      `${COPIES} simultaneous copies of one payment bring at least one result (got ${tally(copies)})`,
      served.length > 0,
    ),
    found(
      "replay.copies_one_result",
      `${COPIES} simultaneous copies of one payment bring one result (got ${brought})`,
      brought <= 1,
    ),
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

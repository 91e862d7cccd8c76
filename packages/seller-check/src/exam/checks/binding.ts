import { type Exchange, isSuccess, sameBody, statusOf } from "../exchange.ts";
import type { Payment } from "../payment.ts";
import { choose, type Payable, readQuotes, type Terms } from "../terms.ts";
import type { Resource, Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, notApplicable } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** What the check leaves: a payment that nobody has taken, for the next check. */
export interface BindingResult {
  readonly result: CheckResult;
  readonly unspent: Payment | null;
}

/** Another request of the same seller that is for sale too; null if none is known. */
export type OtherRoute = Pick<Resource, "url" | "method" | "body"> | null;

/** Presents a settled payment with another body, and a fresh one at another route of the seller. */
export async function checkBinding(
  visit: Visit,
  { terms, sale, payable }: { readonly terms: Terms; readonly sale: Sale; readonly payable: Payable },
  other: OtherRoute,
): Promise<BindingResult> {
  const findings = visit.resource.body === null ? [] : [await otherBody(visit, sale)];
  if (other === null)
    return {
      result:
        findings.length > 0
          ? judged("binding", findings)
          : notApplicable("binding", "the request has no body, and no other paid route of this origin is known"),
      unspent: await visit.pay(terms),
    };
  const payment = await visit.pay(terms);
  if (payment === null) return { result: judged("binding", findings), unspent: null };
  const found = await otherRoute(visit, { payment, terms, payable }, other);
  const isSpent = found.some(({ holds }) => !holds);
  return { result: judged("binding", [...findings, ...found]), unspent: isSpent ? null : payment };
}

async function otherBody(visit: Visit, sale: Sale): Promise<Finding> {
  const changed = await visit.ask(sale.payment.headers, { body: altered(visit.resource.body ?? "") });
  const isServed = changed.answer !== null && isSuccess(changed) && !sameBody(changed.answer, sale.answer);
  return {
    statement: `The payment buys no result for another body, and got ${statusOf(changed)}`,
    holds: changed.answer !== null && !isServed,
    exchanges: [sale.exchange.number, changed.number],
  };
}

/** Another body of the same form, so that a seller who validates first sees a plausible one. */
function altered(body: string): string {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return JSON.stringify({ ...value, exam: "another request" });
  } catch {
    // Not JSON.
  }
  return `${body}another request`;
}

interface Presented {
  readonly payment: Payment;
  readonly terms: Terms;
  readonly payable: Payable;
}

async function otherRoute(
  visit: Visit,
  { payment, terms, payable }: Presented,
  other: NonNullable<OtherRoute>,
): Promise<readonly Finding[]> {
  const unpaid = await visit.ask({}, other);
  const theirs =
    unpaid.answer?.status === 402 ? choose(readQuotes(unpaid.answer), payable, other.url) : "it is not paid";
  if (typeof theirs === "string")
    return [
      { statement: `The other route ${other.url} is left alone: ${theirs}`, holds: true, exchanges: [unpaid.number] },
    ];
  const presented = await visit.ask(payment.headers, other);
  const settled = await visit.settled(terms, payment, isSuccess(presented));
  return [
    {
      statement: `A payment for ${visit.resource.url} is refused at ${other.url}, and got ${statusOf(presented)}`,
      holds: presented.answer !== null && !isSuccess(presented),
      exchanges: numbers(unpaid, presented),
    },
    { statement: "Nothing is charged there", holds: settled === null, exchanges: numbers(presented) },
  ];
}

const numbers = (...exchanges: readonly Exchange[]): readonly number[] => exchanges.map(({ number }) => number);

import type { Facts } from "../chain-facts.ts";
import { type Exchange, isSuccess, sameBody, statusOf } from "../exchange.ts";
import { type OtherRoute, shownRoutes } from "../other-routes.ts";
import type { Payment } from "../payment.ts";
import { choose, type Payable, readQuotes, type Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, notApplicable, shownBy } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

export interface Binding {
  /** An unspent payment, for the next check. */
  readonly unspent: Payment | null;
  readonly judge: (facts: Facts) => CheckResult;
}

interface Bought {
  readonly terms: Terms;
  readonly sale: Sale;
  readonly payable: Payable;
  /** The exchange with the quote. */
  readonly quoted: Exchange;
}

/** The other routes at which a payment may be presented. */
export interface Elsewhere {
  /** Null if none was named. */
  readonly named: OtherRoute | null;
  readonly isAllowed: (url: string) => boolean;
}

const NOWHERE = "the request has no body, and no other paid route of this origin is known";
const NOT_PAID = "it is not paid";
const SAME_RESOURCE = "its 402 names the same resource";

/**
 * Presents the settled payment with another body, and a fresh one at another route: the one that was named if it is for
 * sale, or else one that the seller itself shows.
 */
export async function presentElsewhere(
  visit: Visit,
  bought: Bought,
  { named, isAllowed }: Elsewhere,
): Promise<Binding> {
  const findings = visit.resource.body === null ? [] : [await otherBody(visit, bought.sale)];
  const first = named === null ? null : await look(visit, bought, named);
  const found = first?.leftFor === null ? first : await firstShown(visit, bought, isAllowed);
  // Signed only now, because it has to remain valid for the next check too.
  const payment = await visit.pay(bought.terms);
  const elsewhere =
    payment === null || found === null ? null : await presentAt(visit, { terms: bought.terms, payment }, found);
  return {
    unspent: elsewhere?.isSpent === true ? null : payment,
    judge(facts) {
      const seen = [...findings, ...(elsewhere === null ? [] : elsewhere.judge(facts))];
      const left = first === null || first.leftFor === null ? null : leftAlone(first, first.leftFor);
      if (seen.length > 0) return judged("binding", left === null ? seen : [...seen, left]);
      return notApplicable("binding", left === null ? NOWHERE : `${left.statement}, and ${NOWHERE}`);
    },
  };
}

async function otherBody(visit: Visit, sale: Sale): Promise<Finding> {
  const changed = await visit.ask(sale.payment.headers, { body: altered(visit.resource.body ?? "") });
  const isServed = changed.answer !== null && isSuccess(changed) && !sameBody(changed.answer, sale.answer);
  const statement = `The payment buys no result for another body (got ${statusOf(changed)})`;
  return shownBy(sale.exchange, changed)("binding.other_body", statement, changed.answer !== null && !isServed);
}

/** Returns another body of the same form, so that a seller that validates first sees a plausible one. */
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

/** Another route with its response to an unpaid request. If it is skipped, `leftFor` is the reason. */
interface Looked {
  readonly route: OtherRoute;
  readonly unpaid: Exchange;
  readonly leftFor: string | null;
}

/**
 * Returns the first route that the seller shows and that is for sale on terms that the exam may pay; null if none is.
 */
async function firstShown(visit: Visit, bought: Bought, isAllowed: Elsewhere["isAllowed"]): Promise<Looked | null> {
  for (const route of await shownRoutes(visit, bought.quoted, isAllowed)) {
    const looked = await look(visit, bought, route);
    if (looked.leftFor === null) return looked;
  }
  return null;
}

/** Skips routes that sell the same resource, because a payment for it may be accepted there. */
async function look(visit: Visit, { payable, terms }: Bought, route: OtherRoute): Promise<Looked> {
  const { shownBy: _, ...request } = route;
  const unpaid = await visit.ask({}, request);
  const theirs = unpaid.answer?.status === 402 ? choose(readQuotes(unpaid.answer), payable, route.url) : NOT_PAID;
  if (typeof theirs === "string") return { route, unpaid, leftFor: theirs };
  return { route, unpaid, leftFor: theirs.url === terms.url ? SAME_RESOURCE : null };
}

const leftAlone = ({ route, unpaid }: Looked, reason: string): Finding =>
  shownBy(unpaid)("binding.other_route", `The other route ${route.url} is not tested because ${reason}`, true);

interface Presented {
  /** Whether the payment was accepted there. */
  readonly isSpent: boolean;
  readonly judge: (facts: Facts) => readonly Finding[];
}

async function presentAt(
  visit: Visit,
  { terms, payment }: Pick<Bought, "terms"> & { readonly payment: Payment },
  { route: { shownBy: document, ...request }, unpaid }: Looked,
): Promise<Presented> {
  const presented = await visit.ask(payment.headers, request);
  const isServed = isSuccess(presented);
  // A refused payment is used in the next check, which may settle it rightly, so a charge here is detected now.
  const isCharged = !isServed && (await visit.isShown(terms, payment));
  const place = `${request.url}${document === undefined ? "" : `, which ${document} shows`}`;
  const refused = `A payment for ${visit.resource.url} is refused at ${place} (got ${statusOf(presented)})`;
  const found = shownBy(unpaid, presented);
  return {
    isSpent: isServed || isCharged,
    judge({ settled, returned }) {
      const { nonce } = payment.authorization;
      const isFree = returned.has(nonce) || (!isCharged && !(isServed && settled.has(nonce)));
      return [
        found("binding.other_route", refused, presented.answer !== null && !isServed),
        found("binding.other_route_charged", "Nothing is charged there", isFree),
      ];
    },
  };
}

import { checkBinding, type OtherRoute } from "./checks/binding.ts";
import { checkCaching } from "./checks/caching.ts";
import { checkForgery, presentForgeries } from "./checks/forgery.ts";
import { checkLostAnswer } from "./checks/lost-answer.ts";
import { checkOfferReceipt } from "./checks/offer-receipt.ts";
import { checkPurchase } from "./checks/purchase.ts";
import { checkReplay } from "./checks/replay.ts";
import { checkTerms } from "./checks/terms.ts";
import type { Exchange } from "./exchange.ts";
import { type Level, levelOf } from "./level.ts";
import type { Payable, Terms } from "./terms.ts";
import { type Resource, type Visit, type VisitParts, visit } from "./visit.ts";
import { CHECKS, type CheckResult, notApplicable } from "./vocabulary.ts";

/** What is examined, and within which limits. */
export interface ExamOrder {
  readonly resource: Resource;
  readonly payable: Payable;
  /** Another paid request of the same seller, for the check of binding. */
  readonly other: OtherRoute;
}

/** The whole of an exam, with every exchange that its findings name by number. */
export interface ExamReport {
  readonly level: Level;
  /** One for each check, in the order of `CHECKS`. */
  readonly results: readonly CheckResult[];
  readonly exchanges: readonly Exchange[];
  readonly terms: Terms | null;
  /** In atomic units; null if the chain did not say. */
  readonly spent: bigint | null;
}

/**
 * Examines one paid request as a buyer: at most 40 requests and 3 payments as quoted, none above the ceiling.
 * @throws Error if the chain cannot be read; nothing is judged then
 */
export async function examine({ resource, payable, other }: ExamOrder, parts: VisitParts): Promise<ExamReport> {
  const seller = await visit(resource, parts);
  const { result, terms: found } = await checkTerms(seller, payable);
  const terms = typeof found === "string" ? null : found;
  const results = [result, ...(terms === null ? [] : await paidChecks(seller, { terms, payable }, other))];
  const complete = CHECKS.map(
    (name) =>
      results.find(({ check }) => check === name) ??
      notApplicable(name, typeof found === "string" ? found : "nothing was sold"),
  );
  return {
    level: levelOf(complete),
    results: complete,
    exchanges: seller.exchanges,
    terms,
    spent: terms === null ? 0n : await seller.spent(terms),
  };
}

/** Looks at a paid request without paying: the first check, and nothing that needs a payment. It gives no level. */
export async function examinePassively(
  { resource, payable }: Omit<ExamOrder, "other">,
  parts: VisitParts,
): Promise<ExamReport> {
  const seller = await visit(resource, parts);
  const { result, terms } = await checkTerms(seller, payable);
  const results = CHECKS.map((name) => (name === "terms" ? result : notApplicable(name, "this exam pays nothing")));
  return {
    level: null,
    results,
    exchanges: seller.exchanges,
    terms: typeof terms === "string" ? null : terms,
    spent: 0n,
  };
}

interface Paying {
  readonly terms: Terms;
  readonly payable: Payable;
}

/** Forgeries go first, so that whatever they cause has time to show. */
async function paidChecks(
  seller: Visit,
  { terms, payable }: Paying,
  other: OtherRoute,
): Promise<readonly CheckResult[]> {
  const forgeries = await presentForgeries(seller, terms);
  const { result: purchase, sale } = await checkPurchase(seller, terms);
  const results = [purchase];
  if (sale !== null) {
    results.push(await checkCaching(seller, sale), await checkReplay(seller, terms, sale));
    const { result: binding, unspent } = await checkBinding(seller, { terms, sale, payable }, other);
    results.push(binding, await checkLostAnswer(seller, terms, unspent), await checkOfferReceipt(seller, terms, sale));
  }
  return [...results, await checkForgery(seller, terms, forgeries)];
}

import type { Hex } from "viem";
import type { Facts } from "./chain-facts.ts";
import { type Elsewhere, presentElsewhere } from "./checks/binding.ts";
import { checkCaching } from "./checks/caching.ts";
import { judgeForgeries, presentForgeries } from "./checks/forgery.ts";
import { loseAnswer } from "./checks/lost-answer.ts";
import { checkOfferReceipt } from "./checks/offer-receipt.ts";
import { purchase, type Sale } from "./checks/purchase.ts";
import { checkReplay } from "./checks/replay.ts";
import { askTerms, type Quoted } from "./checks/terms.ts";
import { spentBy } from "./exam-wallet.ts";
import type { Exchange } from "./exchange.ts";
import type { Settled } from "./ledger.ts";
import { type Level, levelOf } from "./level.ts";
import type { OtherRoute } from "./other-routes.ts";
import type { Payable, Terms } from "./terms.ts";
import { type Resource, type Visit, type VisitParts, visit } from "./visit.ts";
import { CHECKS, type CheckResult, notApplicable } from "./vocabulary.ts";

/** The subject and the limits of an exam. */
export interface ExamOrder {
  readonly resource: Resource;
  readonly payable: Payable;
  /**
   * Another request of the same seller, for the check of binding (`namedRoute`). If it is null, or not for sale, one
   * that the seller shows replaces it.
   */
  readonly other: OtherRoute | null;
  /** Whether a URL that the seller shows may be requested too; if absent, any of its origin may be. */
  readonly isAllowed?: (url: string) => boolean;
}

/** A complete exam, with every exchange that its findings name by number. */
export interface ExamReport {
  readonly level: Level;
  /** One for each check, in the order of `CHECKS`. */
  readonly results: readonly CheckResult[];
  readonly exchanges: readonly Exchange[];
  readonly terms: Terms | null;
  /** The payments as settled on the chain, by nonce. */
  readonly settled: ReadonlyMap<Hex, Settled>;
  /** In atomic units. */
  readonly spent: bigint;
}

/**
 * Examines one paid request as a buyer: at most 40 requests and 3 payments as quoted, none above the ceiling.
 * @throws ExaminersFault if the chain cannot be read, or the payer has too little; nothing is judged then
 */
export async function examine(
  { resource, payable, other, isAllowed = () => true }: ExamOrder,
  parts: VisitParts,
): Promise<ExamReport> {
  const seller = await visit(resource, parts);
  const quoted = await askTerms(seller, payable);
  if (typeof quoted.terms === "string") {
    const results = [quoted.judge(null)];
    return reported({ seller, terms: null, results, ...NOTHING_PAID, reason: quoted.terms });
  }
  const { terms } = quoted;
  await seller.requireFunds(terms);
  const judge = await buy(seller, { terms, payable, quoted, elsewhere: { named: other, isAllowed } });
  const facts = await seller.facts(terms);
  const spent = spentBy(parts.payer.address, facts);
  const { settled } = facts;
  return reported({ seller, terms, results: judge(facts), settled, spent, reason: "nothing was sold" });
}

const NOTHING_PAID = { settled: new Map<Hex, Settled>(), spent: 0n } as const;

interface Ended extends Pick<ExamReport, "terms" | "results" | "settled" | "spent"> {
  readonly seller: Visit;
  /** The reason why the other checks do not apply. */
  readonly reason: string;
}

function reported({ seller, results, reason, ...known }: Ended): ExamReport {
  const complete = CHECKS.map((name) => results.find(({ check }) => check === name) ?? notApplicable(name, reason));
  return { level: levelOf(complete), results: complete, exchanges: seller.exchanges, ...known };
}

interface Buying {
  readonly terms: Terms;
  readonly payable: Payable;
  readonly quoted: Quoted;
  readonly elsewhere: Elsewhere;
}

type Judge = (facts: Facts) => readonly CheckResult[];

/** Sends everything to the seller. It is judged once the chain is known. */
async function buy(seller: Visit, buying: Buying): Promise<Judge> {
  const { terms, quoted } = buying;
  const forgeries = await presentForgeries(seller, terms);
  const bought = await purchase(seller, terms);
  const after = bought.sale === null ? null : await afterSale(seller, { ...buying, sale: bought.sale });
  return (facts) => [
    quoted.judge(after?.unpaid ?? null),
    bought.judge(facts),
    ...(after === null ? [] : after.judge(facts)),
    judgeForgeries(seller, forgeries, { terms, facts }),
  ];
}

async function afterSale(
  seller: Visit,
  { terms, payable, quoted, sale, elsewhere }: Buying & { readonly sale: Sale },
): Promise<{ readonly unpaid: Exchange; readonly judge: Judge }> {
  const unpaid = await seller.ask();
  const caching = checkCaching(seller, sale, unpaid);
  const replay = await checkReplay(seller, terms, sale);
  const binding = await presentElsewhere(seller, { terms, sale, payable, quoted: quoted.first }, elsewhere);
  const lost = await loseAnswer(seller, binding.unspent);
  const signed = await checkOfferReceipt(seller, terms, sale);
  return { unpaid, judge: (facts) => [caching, replay, binding.judge(facts), lost(facts), signed] };
}

import type { Address, LocalAccount } from "viem";
import type { Budget } from "./budget.ts";
import { deliver, GIVE_UP_AFTER_MS, type Unanswered } from "./deliver.ts";
import { formatUsd, parseUsd } from "./money.ts";
import { AGAIN, type PaidOutput, pendingOutput, priceOf, toPay } from "./paid-output.ts";
import type { PendingPayment, PendingPayments } from "./pending-payments.ts";
import type { Product } from "./products.ts";
import { publishedBy } from "./published.ts";
import {
  parseJson,
  problemOf,
  type Service,
  type ServiceAnswer,
  ServiceError,
  type ServiceRequest,
} from "./service.ts";
import { createSharedCalls, type Finished } from "./shared-calls.ts";
import { whyNotAgain } from "./sign-again.ts";
import { settlementOf, sign, termsOf } from "./stock-client.ts";
import { amountOf, checkKept, checkTerms, type PaymentRequired } from "./terms.ts";

/** The purchase, and the part of the tool's answer that says what it cost. */
export interface Bought {
  readonly text: string;
  readonly document: unknown;
  readonly paid: PaidOutput;
  /** Builds the error that names what was paid for an answer that cannot be trusted. */
  readonly refuse: (reason: string) => UntrustedAnswer;
  /** Builds the error for an answer that cannot be checked now. */
  readonly unchecked: (cause: Error) => StillKept;
}

export interface Purchase {
  readonly product: Product;
  readonly body: unknown;
  /** US dollars; defaults to the product's price. */
  readonly maxPrice: string | number | undefined;
}

export interface Shop {
  /** Null without a key. */
  readonly payer: Address | null;
  /**
   * Buys once, and returns what `open` makes of the purchase. Without a key it returns the terms; without a final answer it
   * says so, and the next call for the same thing sends the same payment. @throws RefusedTerms, OverBudget, CannotKeep,
   * ServiceError, UntrustedAnswer
   */
  readonly buy: <T>(purchase: Purchase, open: (bought: Bought) => Promise<T>) => Promise<T | PaidOutput>;
}

export interface ShopParts {
  readonly service: Service;
  readonly payer: LocalAccount | null;
  /** The only payee; null for the published one. */
  readonly payTo: Address | null;
  readonly budget: Budget;
  readonly pending: PendingPayments;
  /** How long a call waits for its answer, if not the default. */
  readonly giveUpAfterMs?: number;
}

/** Paid for, but the answer is not what a genuine service returns. */
export class UntrustedAnswer extends Error {}

const NO_KEY =
  "Nothing was bought: this server has no key to pay with. Ask the user to set PAYER_PRIVATE_KEY to the key of a wallet that holds USDC on Base and restart it, or pay these terms with any x402 client.";
const UNREAD = "the service answered as if no payment had come.";

export function createShop(parts: ShopParts): Shop {
  const { payer } = parts;
  const seller = { ...parts, published: publishedBy(parts.service) };
  const share = createSharedCalls();
  return {
    payer: payer?.address ?? null,
    buy: (purchase, open) => {
      const { product, body, maxPrice } = purchase;
      return share(JSON.stringify([product.path, body, maxPrice ?? null]), async () => {
        if (payer === null) return { answer: await quote(seller, purchase), after: async () => undefined };
        return buy({ ...seller, payer }, purchase, open);
      });
    },
  };
}

interface Seller extends ShopParts {
  readonly published: ReturnType<typeof publishedBy>;
}

interface Buyer extends Seller {
  readonly payer: LocalAccount;
}

/** The terms of an unpaid call that may be signed. @throws RefusedTerms */
async function acceptable({ service, published, payTo }: Seller, { product, body, maxPrice }: Purchase) {
  const known = await published(product.path);
  const required = await askTerms(service, { path: product.path, body });
  const offer = checkTerms(required, {
    published: known.amount,
    payTo: payTo ?? known.payTo,
    maxPrice: mostOf({ product, maxPrice }),
  });
  return { required, offer };
}

const mostOf = ({ product, maxPrice }: Pick<Purchase, "product" | "maxPrice">): bigint =>
  maxPrice === undefined ? product.price : (parseUsd(String(maxPrice)) ?? 0n);

async function quote(seller: Seller, purchase: Purchase): Promise<PaidOutput> {
  const { offer } = await acceptable(seller, purchase);
  return { status: "payment_required", price: priceOf(offer), budget: budgetNow(seller), what_to_do: NO_KEY };
}

const budgetNow = ({ budget }: ShopParts) => ({
  limit_usd: formatUsd(budget.limit),
  spent_usd: formatUsd(budget.spent()),
});

/** With the payment that an earlier call left without an answer, else with a new one. */
async function buy<T>(buyer: Buyer, purchase: Purchase, open: Open<T>): Promise<Finished<T | PaidOutput>> {
  const key = keyOf(buyer, purchase);
  const kept = await buyer.pending.find(key);
  if (kept !== null) {
    checkKept(kept, { payTo: buyer.payTo, maxPrice: mostOf(purchase) });
    const sent = { purchase, payment: kept, isNew: false };
    const answer = await send(buyer, sent);
    // A 402 is a promise: that payment is never submitted from now on, so another one can be signed once the chain agrees.
    if ("reason" in answer || answer.status !== 402) return finish(buyer, { ...sent, answer }, open);
    const reason = await whyNotAgain(buyer.service, kept);
    if (reason !== null) return finish(buyer, { ...sent, answer: { reason } }, open);
    await buyer.pending.forget(key, kept);
  }
  let isNew = false;
  const { required, offer } = await acceptable(buyer, purchase);
  const payment = await buyer.pending.keep(key, async () => {
    isNew = true;
    buyer.budget.take(amountOf(offer));
    const { amount, payTo, network, maxTimeoutSeconds } = offer;
    const headers = await sign(buyer.payer, required, offer);
    return { headers, amount, payTo, network, maxTimeoutSeconds, signedAt: new Date().toISOString() };
  });
  const sent = { purchase, payment, isNew };
  return finish(buyer, { ...sent, answer: await send(buyer, sent) }, open);
}

type Open<T> = (bought: Bought) => Promise<T>;

interface Sent {
  readonly purchase: Purchase;
  readonly payment: PendingPayment;
  /** This call signed it. */
  readonly isNew: boolean;
}

interface Answered extends Sent {
  readonly answer: ServiceAnswer | Unanswered;
}

const keyOf = ({ service, payer }: Buyer, { product, body }: Purchase) => ({
  service: service.baseUrl,
  path: product.path,
  body,
  wallet: payer.address,
});

async function send(
  { service, giveUpAfterMs = GIVE_UP_AFTER_MS }: Buyer,
  { purchase, payment }: Sent,
): Promise<ServiceAnswer | Unanswered> {
  const { body, product } = purchase;
  const { path } = product;
  const answer = await deliver(service, { path, body, headers: payment.headers }, giveUpAfterMs);
  if ("reason" in answer || answer.status !== 402) return answer;
  // Something between may have dropped the payment's header. Then this 402 promises nothing.
  const unpaid = await askTerms(service, { path, body }).catch(() => null);
  return unpaid === null || unpaid.error === errorOf(answer) ? { reason: UNREAD } : answer;
}

const errorOf = ({ headers }: ServiceAnswer): string | undefined => {
  try {
    return termsOf(headers).error;
  } catch {
    return undefined;
  }
};

/** A 402 says why in its terms. */
const refusalOf = (answer: ServiceAnswer): string => {
  const error = answer.status === 402 ? errorOf(answer) : undefined;
  return error === undefined ? problemOf(answer) : `the service answered 402: ${error.slice(0, 500)}`;
};

/** Turns what the service said into the tool's answer; what is final is forgotten once the answer is out. */
async function finish<T>(
  buyer: Buyer,
  { answer, ...sent }: Answered,
  open: Open<T>,
): Promise<Finished<T | PaidOutput>> {
  const { purchase, payment } = sent;
  const forget = () => buyer.pending.forget(keyOf(buyer, purchase), payment);
  if ("reason" in answer)
    return { answer: pendingOutput(payment, budgetNow(buyer), answer.reason), after: async () => undefined };
  try {
    return { answer: await open(bought(buyer, sent, answer)), after: forget };
  } catch (error) {
    if (error instanceof UntrustedAnswer || error instanceof NothingSold) await forget();
    throw error;
  }
}

/** The service's final word on a payment that bought nothing. */
class NothingSold extends ServiceError {}

/** Paid for, and the same payment may get a better answer. */
export class StillKept extends ServiceError {}

/** @throws ServiceError that says what was signed, if nothing was sold or the answer cannot be read */
function bought(buyer: Buyer, { purchase, payment, isNew }: Sent, answer: ServiceAnswer): Bought {
  const { path } = purchase.product;
  const { transaction, network, document } = opened(answer, path, { payment, isNew });
  const settlement = { transaction, network, payer: buyer.payer.address };
  const paid = { status: "paid", price: priceOf(payment), budget: budgetNow(buyer), settlement } as const;
  return {
    text: answer.text,
    document,
    paid: isNew ? paid : { ...paid, signed_at: payment.signedAt },
    refuse: (reason) =>
      new UntrustedAnswer(
        `Paid ${toPay(payment)} (transaction ${transaction}), but the answer was withheld: ${reason}`,
      ),
    unchecked: (cause) =>
      new StillKept(
        `Paid ${toPay(payment)} (transaction ${transaction}), but the answer could not be checked: ${cause.message} ${AGAIN}`,
        { cause },
      ),
  };
}

function opened(answer: ServiceAnswer, path: string, { payment, isNew }: Pick<Sent, "payment" | "isNew">) {
  const whose = isNew ? "and counts against the session's budget" : "by an earlier call";
  const counts = `A payment of ${toPay(payment)} was signed ${whose}`;
  const window = `anyone who holds it can settle it for ${payment.maxTimeoutSeconds} s.`;
  if (answer.status !== 200) throw new NothingSold(`${path}: ${refusalOf(answer)} ${counts}: ${window}`);
  try {
    const { success, transaction, network } = settlementOf(answer.headers);
    if (!success) throw new ServiceError("the service says nothing was settled.");
    return { transaction, network, document: parseJson(answer, path) };
  } catch (cause) {
    const { message } = cause as Error;
    throw new StillKept(`${path}: ${message} ${counts}: ${window} ${AGAIN}`, { cause });
  }
}

/** The terms of an unpaid call. @throws ServiceError */
export async function askTerms(service: Service, request: ServiceRequest): Promise<PaymentRequired> {
  const { path } = request;
  const answer = await service.send(request);
  if (answer.status !== 402) throw new ServiceError(`${path}: expected its terms (402); ${problemOf(answer)}`);
  return termsOf(answer.headers);
}

import type { Address, LocalAccount } from "viem";
import type { Budget } from "./budget.ts";
import { deliver } from "./deliver.ts";
import { formatUsd, parseUsd } from "./money.ts";
import type { PaidOutput } from "./paid-output.ts";
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
import { settlementOf, sign, termsOf } from "./stock-client.ts";
import { amountOf, checkTerms, type Offer, type PaymentRequired } from "./terms.ts";

/** The purchase, and the part of the tool's answer that says what it cost. */
export interface Bought {
  readonly text: string;
  readonly document: unknown;
  readonly paid: PaidOutput;
  /** Builds the error that names what was paid for an answer that cannot be trusted. */
  readonly refuse: (reason: string) => UntrustedAnswer;
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
  /** Buys once. Without a key it returns the terms. @throws RefusedTerms, OverBudget, ServiceError, UntrustedAnswer */
  readonly buy: (purchase: Purchase) => Promise<Bought | { readonly unpaid: PaidOutput }>;
}

export interface ShopParts {
  readonly service: Service;
  readonly payer: LocalAccount | null;
  /** The only payee; null for the published one. */
  readonly payTo: Address | null;
  readonly budget: Budget;
}

/** Paid for, but the answer is not what a genuine service returns. */
export class UntrustedAnswer extends Error {}

const NO_KEY =
  "Nothing was bought: this server has no key to pay with. Ask the user to set PAYER_PRIVATE_KEY to the key of a wallet that holds USDC on Base and restart it, or pay these terms with any x402 client.";

export function createShop({ service, payer, payTo, budget }: ShopParts): Shop {
  const published = publishedBy(service);
  const budgetNow = () => ({ limit_usd: formatUsd(budget.limit), spent_usd: formatUsd(budget.spent()) });
  return {
    payer: payer?.address ?? null,
    async buy({ product: { path, price: usual }, body, maxPrice }) {
      const known = await published(path);
      const required = await askTerms(service, { path, body });
      const offer = checkTerms(required, {
        published: known.amount,
        payTo: payTo ?? known.payTo,
        maxPrice: maxPrice === undefined ? usual : (parseUsd(String(maxPrice)) ?? 0n),
      });
      const price = priceOf(offer);
      if (payer === null)
        return { unpaid: { status: "payment_required", price, budget: budgetNow(), what_to_do: NO_KEY } };
      budget.take(amountOf(offer));
      const headers = await sign(payer, required, offer);
      const answer = await deliver(service, { path, body, headers });
      const { transaction, network, document } = opened(answer, path, offer);
      const settlement = { transaction, network, payer: payer.address };
      return {
        text: answer.text,
        document,
        paid: { status: "paid", price, budget: budgetNow(), settlement },
        refuse: (reason) =>
          new UntrustedAnswer(
            `Paid ${toPay(offer)} (transaction ${transaction}), but the answer was withheld: ${reason}`,
          ),
      };
    },
  };
}

const toPay = (offer: Offer): string => `${formatUsd(amountOf(offer))} USD to ${offer.payTo}`;

/**
 * The answer to a payment. @throws ServiceError that says what was signed, if nothing was sold or the answer cannot be
 * read
 */
function opened(answer: ServiceAnswer, path: string, offer: Offer) {
  try {
    if (answer.status !== 200) throw new ServiceError(problemOf(answer));
    const { success, transaction, network } = settlementOf(answer.headers);
    if (!success) throw new ServiceError("the service says nothing was settled.");
    return { transaction, network, document: parseJson(answer, path) };
  } catch (cause) {
    const { message } = cause as Error;
    throw new ServiceError(
      `${path}: ${message} A payment of ${toPay(offer)} was signed and counts against the session's budget: anyone who holds it can settle it for ${offer.maxTimeoutSeconds} s.`,
      { cause },
    );
  }
}

/** The terms of an unpaid call. @throws ServiceError */
export async function askTerms(service: Service, request: ServiceRequest): Promise<PaymentRequired> {
  const { path } = request;
  const answer = await service.send(request);
  if (answer.status !== 402) throw new ServiceError(`${path}: expected its terms (402); ${problemOf(answer)}`);
  return termsOf(answer.headers);
}

const priceOf = (offer: Offer): NonNullable<PaidOutput["price"]> => ({
  amount_usd: formatUsd(amountOf(offer)),
  amount_atomic: offer.amount,
  asset: "USDC",
  network: offer.network,
  pay_to: offer.payTo,
});

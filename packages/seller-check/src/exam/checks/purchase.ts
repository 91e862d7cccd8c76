import { isAddressEqual } from "viem";
import type { Facts } from "../chain-facts.ts";
import { type Answer, type Exchange, isSuccess, statusOf } from "../exchange.ts";
import type { Settled } from "../ledger.ts";
import { type Payment, recipientOf, settlementSaid } from "../payment.ts";
import type { Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, shownBy } from "../vocabulary.ts";

/** A completed sale. */
export interface Sale {
  readonly payment: Payment;
  readonly exchange: Exchange;
  readonly answer: Answer;
}

export interface Purchase {
  /** Null if there was none. */
  readonly sale: Sale | null;
  /** Compares the response with the chain. */
  readonly judge: (facts: Facts) => CheckResult;
}

/** Pays as quoted. */
export async function purchase(visit: Visit, terms: Terms): Promise<Purchase> {
  const payment = await visit.pay(terms);
  if (payment === null) throw new Error("the first payment of an exam is always left");
  const exchange = await visit.ask(payment.headers);
  const { answer } = exchange;
  const sale = answer !== null && isSuccess(exchange) ? { payment, exchange, answer } : null;
  if (sale !== null) await visit.untilShown(terms, payment);
  const of = shownBy(exchange);
  return {
    sale,
    judge({ settled, returned, bars }) {
      const { nonce } = payment.authorization;
      const found = settled.get(nonce) ?? null;
      return judged("purchase", [
        of(
          "purchase.payable",
          `The token pays ${terms.payTo}, and has not put it on its blacklist`,
          !bars.has("payee"),
        ),
        of(
          "purchase.served",
          `A payment as quoted is answered with the result (got ${statusOf(exchange)})`,
          sale !== null,
        ),
        ...(sale === null
          ? [
              of(
                "purchase.not_charged",
                "Nothing is charged for a refused payment",
                found === null || returned.has(nonce),
              ),
            ]
          : [charged(found, terms, of), ...compareResponse(settlementSaid(sale.answer), found, of)]),
      ]);
    },
  };
}

type Find = ReturnType<typeof shownBy>;

function charged(settled: Settled | null, { amount, payTo, hold }: Terms, of: Find): Finding {
  if (settled === null) return of("purchase.charged", "The chain shows the payment within 30 seconds", false);
  const { value, to } = settled;
  const payee = recipientOf({ payTo, hold });
  const whom =
    hold === null ? `the quoted ${payTo} is paid` : `the collector ${payee} takes it, to be held for ${payTo}`;
  return of(
    "purchase.charged",
    `Exactly the quoted ${amount} is charged (was ${value}), and ${whom} (was ${to})`,
    value === amount && isAddressEqual(to, payee),
  );
}

function compareResponse(
  claim: Readonly<Record<string, unknown>> | null,
  settled: Settled | null,
  of: Find,
): readonly Finding[] {
  if (claim === null) return [of("purchase.response", "PAYMENT-RESPONSE reports the settlement", false)];
  const transaction = String(claim.transaction).toLowerCase();
  return [
    of("purchase.response", "PAYMENT-RESPONSE reports the settlement", true),
    of("purchase.response_success", "PAYMENT-RESPONSE reports success", claim.success === true),
    of(
      "purchase.response_transaction",
      `PAYMENT-RESPONSE names the transaction on the chain (named ${transaction})`,
      transaction === settled?.transaction.toLowerCase(),
    ),
  ];
}

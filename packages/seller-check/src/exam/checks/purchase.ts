import { isAddressEqual } from "viem";
import { type Answer, type Exchange, isSuccess, statusOf } from "../exchange.ts";
import type { Settled } from "../ledger.ts";
import { type Payment, settlementSaid } from "../payment.ts";
import type { Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged } from "../vocabulary.ts";

/** A sale that went through. */
export interface Sale {
  readonly payment: Payment;
  readonly exchange: Exchange;
  readonly answer: Answer;
}

/** Pays as quoted and compares what is said with what the chain shows. The sale is null if nothing came of it. */
export async function checkPurchase(visit: Visit, terms: Terms): Promise<{ result: CheckResult; sale: Sale | null }> {
  const payment = await visit.pay(terms);
  if (payment === null) throw new Error("the first payment of an exam is always left");
  const exchange = await visit.ask(payment.headers);
  const settled = await visit.settled(terms, payment, isSuccess(exchange));
  const { answer } = exchange;
  const sale = answer !== null && isSuccess(exchange) ? { payment, exchange, answer } : null;
  const of = (statement: string, holds: boolean): Finding => ({ statement, holds, exchanges: [exchange.number] });
  const findings = [
    of(`A payment as quoted is answered with the result, and got ${statusOf(exchange)}`, sale !== null),
    ...(sale === null
      ? [of("Nothing is charged for a refused payment", settled === null)]
      : [...charged(settled, terms, of), ...said(settlementSaid(sale.answer), settled, of)]),
  ];
  return { result: judged("purchase", findings), sale };
}

type Find = (statement: string, holds: boolean) => Finding;

function charged(settled: Settled | null, { amount, payTo }: Terms, of: Find): readonly Finding[] {
  if (settled === null) return [of("The chain shows the payment within 30 seconds", false)];
  return [
    of(`Exactly the quoted ${amount} is charged, and it was ${settled.value}`, settled.value === amount),
    of(`The quoted ${payTo} is paid, and it was ${settled.to}`, isAddressEqual(settled.to, payTo)),
  ];
}

function said(claim: Readonly<Record<string, unknown>> | null, settled: Settled | null, of: Find): readonly Finding[] {
  if (claim === null) return [of("PAYMENT-RESPONSE says what was settled", false)];
  const transaction = String(claim.transaction).toLowerCase();
  return [
    of("PAYMENT-RESPONSE says success", claim.success === true),
    of(
      `PAYMENT-RESPONSE names the transaction on the chain, and says ${transaction}`,
      transaction === settled?.transaction.toLowerCase(),
    ),
  ];
}

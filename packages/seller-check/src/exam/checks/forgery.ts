import { type Exchange, isSuccess, statusOf } from "../exchange.ts";
import { type Authorization, asQuoted, type Payment } from "../payment.ts";
import type { Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged } from "../vocabulary.ts";

const A_DAY = 86_400n;

interface Forgery {
  readonly name: string;
  readonly change?: (quoted: Authorization) => Authorization;
  /** What is signed instead of what is presented. */
  readonly really?: (presented: Authorization) => Authorization;
}

/** USDC wants a time after `validAfter` and before `validBefore`: with these there is none, now or later. */
const never = (authorization: Authorization, from: bigint): Authorization => ({
  ...authorization,
  validAfter: from,
  validBefore: from + 1n,
});

/**
 * A seller who settles them gains one atomic unit at most: what is for another recipient goes back to the payer, and no
 * block comes in which the last three are valid. A signature that had one digit changed could be mended by trying
 * fifteen others, so the broken one is for another authorization.
 */
const FORGERIES: readonly Forgery[] = [
  { name: "for less than quoted", change: (quoted) => ({ ...quoted, value: quoted.value > 1n ? 1n : 0n }) },
  { name: "for another recipient", change: (quoted) => ({ ...quoted, to: quoted.from }) },
  { name: "that has expired", change: (quoted) => never(quoted, quoted.validAfter) },
  { name: "that is not valid yet", change: (quoted) => never(quoted, quoted.validBefore + A_DAY) },
  { name: "with a broken signature", really: (presented) => never(presented, presented.validAfter) },
];

/** Presents payments that are not as quoted. What became of them is looked at by `settledForgeries`, at the end. */
export async function presentForgeries(visit: Visit, terms: Terms): Promise<readonly Presented[]> {
  const { payer, ledger } = visit.parts;
  const quoted = asQuoted(terms, payer.address, await ledger.now());
  const presented: Presented[] = [];
  for (const { name, change = (same: Authorization) => same, really } of FORGERIES) {
    const { nonce } = asQuoted(terms, payer.address, 0);
    const authorization = { ...change(quoted), nonce };
    const payment = await visit.sign({ terms, authorization, ...(really && { really: really(authorization) }) });
    presented.push({ name, payment, exchange: await visit.ask(payment.headers) });
  }
  return presented;
}

/** A forged payment, and what the seller answered. */
export interface Presented {
  readonly name: string;
  readonly payment: Payment;
  readonly exchange: Exchange;
}

/** Judges forged payments by their answers and by the chain. */
export async function checkForgery(visit: Visit, terms: Terms, presented: readonly Presented[]): Promise<CheckResult> {
  const findings: Finding[] = [];
  for (const { name, payment, exchange } of presented) {
    const exchanges = [exchange.number];
    const settled = await visit.settled(terms, payment, false);
    findings.push(
      {
        statement: `A payment ${name} is refused, and got ${statusOf(exchange)}`,
        holds: exchange.answer !== null && !isSuccess(exchange),
        exchanges,
      },
      { statement: `A payment ${name} is not settled`, holds: settled === null, exchanges },
    );
  }
  return judged("forgery", [...findings, await chargedAsQuoted(visit, terms)]);
}

/** Whatever else may have been settled: no more has left the account than what was signed as quoted. */
async function chargedAsQuoted(visit: Visit, terms: Terms): Promise<Finding> {
  const [spent, owed] = [await visit.spent(terms), terms.amount * BigInt(visit.payments.length)];
  return {
    statement: `${visit.payments.length} payments as quoted come to ${owed}, and ${spent} left the account`,
    holds: spent <= owed,
    exchanges: [],
  };
}

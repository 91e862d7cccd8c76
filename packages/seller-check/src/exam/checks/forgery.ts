import type { Facts } from "../chain-facts.ts";
import { spentBy } from "../exam-wallet.ts";
import { type Exchange, isSuccess, statusOf } from "../exchange.ts";
import { asQuoted, type Draft, type Payment } from "../payment.ts";
import type { Terms } from "../terms.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, type Finding, judged, shownBy } from "../vocabulary.ts";

const A_DAY = 86_400n;

interface Forgery {
  readonly name: string;
  readonly change?: (quoted: Draft) => Draft;
  /** The draft that is really signed, if not the presented one. */
  readonly really?: (presented: Draft) => Draft;
}

/** USDC requires a time after `validAfter` and before `validBefore`; with these values there is none, now or later. */
const never = (draft: Draft, from: bigint): Draft => ({
  ...draft,
  validAfter: from,
  validBefore: from + 1n,
});

/**
 * A seller that settles them gains at most one atomic unit: a payment to another recipient returns to the payer, and
 * the last three are valid in no block. A signature with one changed digit could be repaired by trying fifteen others,
 * so the broken one is for another authorization.
 */
const FORGERIES: readonly Forgery[] = [
  { name: "for less than quoted", change: (quoted) => ({ ...quoted, value: quoted.value > 1n ? 1n : 0n }) },
  { name: "for another recipient", change: (quoted) => ({ ...quoted, to: quoted.from }) },
  { name: "that has expired", change: (quoted) => never(quoted, quoted.validAfter) },
  { name: "that is not valid yet", change: (quoted) => never(quoted, quoted.validBefore + A_DAY) },
  { name: "with a broken signature", really: (presented) => never(presented, presented.validAfter) },
];

/** Presents payments that differ from the quote. Their outcome is judged at the end, by `judgeForgeries`. */
export async function presentForgeries(visit: Visit, terms: Terms): Promise<readonly Presented[]> {
  const { payer } = visit.parts;
  const quoted = asQuoted(terms, payer.address, await visit.signingTime());
  const presented: Presented[] = [];
  for (const { name, change = (same: Draft) => same, really } of FORGERIES) {
    const draft = change(quoted);
    const payment = await visit.sign({ terms, draft, ...(really && { really: really(draft) }) });
    presented.push({ name, payment, exchange: await visit.ask(payment.headers) });
  }
  return presented;
}

/** A forged payment, and the seller's response. */
export interface Presented {
  readonly name: string;
  readonly payment: Payment;
  readonly exchange: Exchange;
}

/** Judges forged payments by their responses and by the chain. */
export function judgeForgeries(visit: Visit, presented: readonly Presented[], { terms, facts }: Known): CheckResult {
  const findings = presented.flatMap(({ name, payment, exchange }): readonly Finding[] => [
    shownBy(exchange)(
      "forgery.refused",
      `A payment ${name} is refused (got ${statusOf(exchange)})`,
      exchange.answer !== null && !isSuccess(exchange),
    ),
    shownBy(exchange)(
      "forgery.not_settled",
      `A payment ${name} is not settled`,
      !facts.settled.has(payment.authorization.nonce),
    ),
  ]);
  const [count, spent] = [visit.payments.length, spentBy(visit.parts.payer.address, facts)];
  const owed = terms.amount * BigInt(count);
  return judged("forgery", [
    ...findings,
    shownBy()(
      "forgery.charged_as_quoted",
      `${count} payments as quoted total ${owed}, and ${spent} left the account`,
      spent <= owed,
    ),
  ]);
}

interface Known {
  readonly terms: Terms;
  readonly facts: Facts;
}

import { COUNTERPARTY_BANDS, INDEPENDENCE, pointsIn } from "./bands.ts";
import { dayOf, type PayeeFact, type ScoreFacts } from "./facts.ts";
import { inTransaction, type Judged, type NotCounted } from "./record.ts";

/** Returns the reason why a payee is not an independent counterparty, or null if it is one. */
function reasonAgainst(payee: PayeeFact, { window, largest_funder }: ScoreFacts["chain"]): NotCounted | null {
  const [value, returned] = [BigInt(payee.value), BigInt(payee.returned)];
  if (value < INDEPENDENCE.floor) return "below_floor";
  if (dayOf(payee.last_at) < window.from) return "outside_window";
  if (returned * 100n >= value * BigInt(INDEPENDENCE.sentBackBelowPercent)) return "reciprocal_flow";
  if (payee.payee === largest_funder || payee.payee === payee.funder_at_floor) return "own_funder";
  return reasonOfFunders(payee);
}

/** Payers with unknown funders do not count; if they could have made a difference, that is the reason. */
function reasonOfFunders({ other_funders, unfunded_payers }: PayeeFact): NotCounted | null {
  if (other_funders >= INDEPENDENCE.otherFunders) return null;
  return other_funders + unfunded_payers >= INDEPENDENCE.otherFunders ? "funder_unknown" : "too_few_funders";
}

/** Lists every examined payee, with the reason if it does not count. */
export function judgeCounterparties({ chain }: ScoreFacts): Judged {
  const facts = chain.payees.map((one) => {
    const reason = reasonAgainst(one, chain);
    const { payee, last_tx } = one;
    return { kind: "counterparty", counts: reason === null, payee, reason, ...inTransaction(last_tx) } as const;
  });
  return { points: pointsIn(COUNTERPARTY_BANDS, facts.filter(({ counts }) => counts).length), facts };
}

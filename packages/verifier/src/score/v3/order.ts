import type { ScoreFactsOf } from "../v1/facts.ts";
import { inOrder as inOrderOf } from "../v1/order.ts";
import type { PayeeFact, ScoreFacts } from "./facts.ts";

/** The same facts in the single order that is scored, hashed and served: as in version 1, and payers by their address. */
export function inOrder(facts: ScoreFacts): ScoreFacts {
  const ordered = inOrderOf(facts as unknown as ScoreFactsOf<unknown>) as unknown as ScoreFacts;
  return { ...ordered, chain: { ...ordered.chain, payees: ordered.chain.payees.map(payersInOrder) } };
}

const payersInOrder = (payee: PayeeFact): PayeeFact => ({
  ...payee,
  payers: payee.payers?.toSorted((a, b) => (a.payer < b.payer ? -1 : 1)) ?? null,
});

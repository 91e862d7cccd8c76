import type { PayeeFact, ScoreFacts } from "./facts.ts";

type Key = readonly string[];

/** Ascending by the first key that differs, in code units: independent of language and locale. */
const compare = (a: Key, b: Key): number => {
  const at = a.findIndex((part, index) => part !== b[index]);
  return at < 0 ? 0 : (a[at] ?? "") < (b[at] ?? "") ? -1 : 1;
};

const sortedBy = <T>(items: readonly T[], key: (item: T) => Key): readonly T[] =>
  items.toSorted((a, b) => compare(key(a), key(b)));

/**
 * Returns the same facts in the one order that is scored, hashed, and served: oldest first, then by name; payers by
 * address; the PASS of the exams before the FAIL.
 */
export const inOrder = ({ seller_exams, ...facts }: ScoreFacts): ScoreFacts => ({
  ...facts,
  certificates: sortedBy(facts.certificates, ({ issued_at, id }) => [issued_at, id]),
  chain: {
    ...facts.chain,
    payments: { ...facts.chain.payments, days: sortedBy(facts.chain.payments.days, ({ day }) => [day]) },
    payees: sortedBy(facts.chain.payees, ({ last_at, payee }) => [last_at, payee]).map(payersInOrder),
  },
  seller_exams: sortedBy(seller_exams, ({ result }) => [result]).toReversed(),
});

const payersInOrder = (one: PayeeFact): PayeeFact => ({
  ...one,
  payers: one.payers === null ? null : sortedBy(one.payers, ({ payer }) => [payer]),
});

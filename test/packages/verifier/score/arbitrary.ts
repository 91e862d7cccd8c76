import fc from "fast-check";
import {
  type CertificateFact,
  dayOf,
  type PayeeFact,
  type PaymentFacts,
  type ScoreFacts,
} from "../../../../packages/verifier/src/score/facts.ts";
import { PRODUCT_MENU } from "../../../../packages/verifier/src/vocabulary.ts";
import { certificate, daysAgo, FUNDER, facts, outcomes, payee, payments, transaction } from "./facts.ts";

// Each item's place in its list makes it unlike the others: a search for distinct ones would be slow.

const certificates: fc.Arbitrary<readonly CertificateFact[]> = fc
  .array(
    fc.record({
      product: fc.constantFrom(...PRODUCT_MENU),
      result: fc.constantFrom("pass", "fail"),
      age: fc.nat(70),
      reversed: fc.nat(4).map((n) => n === 0),
    }),
    { maxLength: 10 },
  )
  .map((all) => all.map(({ product, ...rest }, n) => ({ ...certificate(product, rest), id: `certificate-${n}` })));

/** Certificates of a kind that leaves every tier open. */
const passes = fc.tuple(...PRODUCT_MENU.map((product) => fc.nat(29).map((age) => certificate(product, { age }))));

const paymentsOfWindow: fc.Arbitrary<PaymentFacts> = fc
  .array(fc.record({ within: fc.nat(2), count: fc.integer({ min: 1, max: 20 }), more: fc.nat(9_000_000) }), {
    maxLength: 30,
  })
  .map((days) =>
    payments(
      ...days.map(({ within, count, more }, n) => [daysAgo(3 * n + within), count, count * 1_000 + more] as const),
    ),
  );

/** Of a few addresses, so that payees and funders meet. */
const someone = fc.nat(64).map((n) => payee(n).payee);
const funder = fc.oneof(fc.constant(null), fc.constant(FUNDER), someone);

const payeesOf = (minLength: number, maxLength: number): fc.Arbitrary<readonly PayeeFact[]> =>
  fc
    .array(
      fc.record({
        value: fc.integer({ min: 40_000, max: 200_000 }),
        returned: fc.oneof(fc.constant(0), fc.nat(150_000)),
        ago: fc.nat(120),
        funder_at_floor: funder,
        other_funders: fc.nat(6),
        unfunded_payers: fc.nat(3),
      }),
      { minLength, maxLength, size: "max" },
    )
    .map((all) =>
      all.map(({ ago, value, returned, ...rest }, n) =>
        payee(n, {
          ...rest,
          value: String(value),
          returned: String(returned),
          first_at: daysAgo(150),
          last_at: daysAgo(ago),
        }),
      ),
    );

const honestPayees = fc.nat(64).map((count) => Array.from({ length: count }, (_, n) => payee(n)));

/** Buyers, and their buyer-days. */
export const buyerDays = (most: number) =>
  fc.tuple(fc.nat(most), fc.nat(4 * most)).map(([buyers, more]) => [buyers, buyers && buyers + more] as const);

/** Facts that an index and a service could have, from an unknown wallet to one of rank. */
export const anyFacts: fc.Arbitrary<ScoreFacts> = fc
  .record({
    certificates: fc.oneof(certificates, passes),
    made: paymentsOfWindow,
    payees: fc.oneof(
      { arbitrary: honestPayees, weight: 4 },
      { arbitrary: payeesOf(0, 12), weight: 4 },
      { arbitrary: payeesOf(63, 64), weight: 1 },
    ),
    largest_funder: funder,
    releases: buyerDays(7),
    refunds: fc.oneof(fc.constant([0, 0] as const), buyerDays(9)),
  })
  .map(({ certificates, made, payees, largest_funder, releases, refunds }) =>
    facts({ payments: made, payees, largest_funder, escrow: outcomes(releases, refunds) }, certificates),
  );

/** The same facts in another order. */
export const shuffled = (given: ScoreFacts): fc.Arbitrary<ScoreFacts> => {
  const mixed = <T>(items: readonly T[]) =>
    fc.shuffledSubarray([...items], { minLength: items.length, maxLength: items.length });
  return fc
    .tuple(mixed(given.certificates), mixed(given.chain.payments.days), mixed(given.chain.payees))
    .map(([certificates, days, payees]) => ({
      ...given,
      certificates,
      chain: { ...given.chain, payments: { ...given.chain.payments, days }, payees },
    }));
};

/** What the index says after one more payment of 0.05 USD, at `as_of`, to a payee that is independent. */
export function afterHonestPayment(given: ScoreFacts, { to, evicted }: { to: PayeeFact; evicted: number }): ScoreFacts {
  const { payments: made, payees } = given.chain;
  const today = dayOf(given.as_of);
  const known = made.days.find(({ day }) => day === today) ?? { day: today, count: 0, value: "0" };
  const days = [
    ...made.days.filter(({ day }) => day !== today),
    { day: today, count: known.count + 1, value: String(BigInt(known.value) + 50_000n) },
  ];
  const paid = { ...to, value: String(BigInt(to.value) + 50_000n), last_at: given.as_of, last_tx: transaction(7) };
  const others = payees.filter((one) => one.payee !== to.payee);
  const kept = others.length < 64 ? others : others.toSpliced(evicted % others.length, 1);
  return {
    ...given,
    chain: {
      ...given.chain,
      payments: { days, last: { at: given.as_of, tx: transaction(7) } },
      payees: [...kept, paid],
    },
  };
}

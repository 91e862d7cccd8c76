import fc from "fast-check";
import {
  type CertificateFact,
  type ChainFacts,
  dayOf,
  type PayeeFact,
  type PaymentFacts,
  type ScoreFacts,
  windowAt,
} from "../../../../packages/verifier/src/score/facts.ts";
import { PRODUCT_MENU, type Product } from "../../../../packages/verifier/src/vocabulary.ts";

const DAY_MS = 86_400_000;
export const AS_OF = "2026-11-25T09:30:00.000Z";
export const WALLET = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
export const FUNDER = "0x00000000000000000000000000000000000000f0";

const account = (n: number) => `0x${n.toString(16).padStart(40, "0")}` as const;
export const transaction = (n: number) => `0x${n.toString(16).padStart(64, "0")}` as const;
/** The instant this number of milliseconds before `AS_OF`. */
export const before = (ms: number): string => new Date(Date.parse(AS_OF) - ms).toISOString();
export const daysAgo = (days: number): string => before(days * DAY_MS);

/** A certificate that was issued this number of days ago and is valid for 30 days. */
export function certificate(
  product: Product,
  { result = "pass", age = 1, reversed = false }: { result?: "pass" | "fail"; age?: number; reversed?: boolean } = {},
): CertificateFact {
  const id = `${product}-${result}-${age}${reversed ? "-reversed" : ""}`;
  return {
    id,
    url: `https://trust.example/cert/${id}`,
    product,
    result,
    issued_at: daysAgo(age),
    valid_until: daysAgo(age - 30),
    reversed_at: reversed ? daysAgo(0) : null,
  };
}

/** A payee that counts as independent. */
export const payee = (n: number, facts: Partial<PayeeFact> = {}): PayeeFact => ({
  payee: account(0x1000 + n),
  value: "50000",
  first_at: daysAgo(2),
  last_at: daysAgo(1),
  last_tx: transaction(0x1000 + n),
  returned: "0",
  funder_at_floor: FUNDER,
  other_funders: 3,
  unfunded_payers: 0,
  payers: null,
  ...facts,
});

export const payees = (count: number): readonly PayeeFact[] => Array.from({ length: count }, (_, n) => payee(n));

/** Payments by day: their number, and their sum in atomic USDC. */
export const payments = (
  ...entries: readonly (readonly [at: string, count: number, value: number])[]
): PaymentFacts => {
  const [last] = entries.map(([at]) => at).toSorted((a, b) => (a < b ? 1 : -1));
  return {
    days: entries.map(([at, count, value]) => ({ day: dayOf(at), count, value: String(value) })),
    last: last === undefined ? null : { at: last, tx: transaction(1) },
  };
};

/** Releases and refunds, each as the number of buyers and of buyer-days. */
export const outcomes = (
  [buyers, release_days]: readonly [number, number],
  [refunded_buyers, refund_days]: readonly [number, number] = [0, 0],
): ChainFacts["escrow"] => ({
  buyers,
  release_days,
  last_release_tx: release_days > 0 ? transaction(2) : null,
  refunded_buyers,
  refund_days,
  last_refund_tx: refund_days > 0 ? transaction(3) : null,
});

/** A wallet with only the given facts. */
export const facts = (
  chain: Partial<ChainFacts> = {},
  certificates: readonly CertificateFact[] = [],
  asOf: string = AS_OF,
): ScoreFacts => ({
  wallet: WALLET,
  as_of: asOf,
  as_of_block: 40_000_000,
  certificates,
  chain: {
    network: "eip155:8453",
    scope: "full",
    first_block: 36_000_000,
    window: windowAt(asOf),
    payments: payments(),
    largest_funder: FUNDER,
    payees: [],
    escrow: outcomes([0, 0]),
    lookup: null,
    ...chain,
  },
  seller_exams: [],
});

export const ALL_PASSES = [certificate("suite"), certificate("scam"), certificate("recipient")];

// Each item depends on its index, so items are distinct without a slow search for distinct ones.

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

/** Certificates with which every tier is possible. */
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

/** Few addresses, so that payees and funders coincide. */
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

/** Numbers of buyers and of buyer-days. */
export const buyerDays = (most: number) =>
  fc.tuple(fc.nat(most), fc.nat(4 * most)).map(([buyers, more]) => [buyers, buyers && buyers + more] as const);

/** Facts that an index and a service can produce, from an unknown wallet to a top one. */
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

/** The index's facts after one more payment of 0.05 USD, at `as_of`, to an independent payee. */
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

import {
  type CertificateFact,
  type ChainFacts,
  dayOf,
  type PayeeFact,
  type PaymentFacts,
  type ScoreFacts,
  windowAt,
} from "../../../../packages/verifier/src/score/facts.ts";
import type { Product } from "../../../../packages/verifier/src/vocabulary.ts";

const DAY_MS = 86_400_000;
export const AS_OF = "2026-11-25T09:30:00.000Z";
export const WALLET = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
export const FUNDER = "0x00000000000000000000000000000000000000f0";

const account = (n: number) => `0x${n.toString(16).padStart(40, "0")}` as const;
export const transaction = (n: number) => `0x${n.toString(16).padStart(64, "0")}` as const;
/** The instant this many milliseconds before `AS_OF`. */
export const before = (ms: number): string => new Date(Date.parse(AS_OF) - ms).toISOString();
export const daysAgo = (days: number): string => before(days * DAY_MS);

/** One issued this many days ago, valid for 30 days. */
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

/** One that counts as independent. */
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

/** Payments on these days: how many, and their sum in atomic USDC. */
export const payments = (
  ...entries: readonly (readonly [at: string, count: number, value: number])[]
): PaymentFacts => {
  const [last] = entries.map(([at]) => at).toSorted((a, b) => (a < b ? 1 : -1));
  return {
    days: entries.map(([at, count, value]) => ({ day: dayOf(at), count, value: String(value) })),
    last: last === undefined ? null : { at: last, tx: transaction(1) },
  };
};

/** Releases and refunds: how many buyers, and their buyer-days. */
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

/** A wallet that has done nothing but what is given. */
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

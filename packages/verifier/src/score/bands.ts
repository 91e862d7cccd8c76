// The score as data, used by the function that computes it, by the documentation, and by the diagrams.

export const SCORE_VERSION = 1;

/** The components in display order, with the maximum points of each: 100 in total. */
export const MAX_POINTS = {
  payment_capability: 30,
  scam_resistance: 20,
  recipient_awareness: 20,
  independent_counterparties: 12,
  payments: 6,
  active_weeks: 6,
  recency: 3,
  escrow_outcomes: 3,
} as const;

export type ComponentName = keyof typeof MAX_POINTS;

/** The points for an amount of at least `from`, in ascending order; an amount below the first earns none. */
export interface Band {
  readonly from: number;
  readonly points: number;
}

/** The minimum size of an authorized payment that counts, in atomic USDC. */
export const QUALIFYING_PAYMENT = 1_000;

/** The best one that applies counts. */
export const PAYMENT_CAPABILITY = {
  freshSuitePass: 30,
  anyFreshPass: 26,
  qualifyingPayments: { from: 3, points: 22 },
} as const;

/** A fresh PASS of the behavioral test, and no fresh FAIL. */
export const BEHAVIORAL_PASS = 20;

/** By the number of independent counterparties. */
export const COUNTERPARTY_BANDS: readonly Band[] = [
  { from: 1, points: 1 },
  { from: 2, points: 2 },
  { from: 3, points: 4 },
  { from: 5, points: 6 },
  { from: 8, points: 8 },
  { from: 12, points: 10 },
  { from: 20, points: 12 },
];

/** The number of payees to examine, and the conditions for an independent counterparty. */
export const MAX_PAYEES = 64;
export const INDEPENDENCE = {
  /** The sum of the wallet's payments to the payee, in atomic USDC. */
  floor: 50_000,
  /** The payee has returned less than this share of them. */
  sentBackBelowPercent: 50,
  /** Distinct largest funders of its payers, other than the wallet, the payee, and the wallet's own largest funder. */
  otherFunders: 3,
} as const;

/** The lower of two results: by the number of qualifying payments in the window, and by their sum in atomic USDC. */
export const PAYMENT_COUNT_BANDS: readonly Band[] = [
  { from: 3, points: 1 },
  { from: 10, points: 2 },
  { from: 25, points: 4 },
  { from: 50, points: 6 },
];
export const PAYMENT_VALUE_BANDS: readonly Band[] = [
  { from: 250_000, points: 1 },
  { from: 1_000_000, points: 2 },
  { from: 5_000_000, points: 4 },
  { from: 25_000_000, points: 6 },
];
/** At most this many qualifying payments count per independent counterparty. */
export const PAYMENTS_PER_COUNTERPARTY = 5;

/** For each ISO week with a qualifying payment. */
export const POINTS_PER_WEEK = 1;

/** By whole days since the last qualifying payment: the first band that matches. */
export const RECENCY_BANDS: readonly { readonly withinDays: number; readonly points: number }[] = [
  { withinDays: 7, points: 3 },
  { withinDays: 30, points: 2 },
  { withinDays: 60, points: 1 },
];

/** The minimum amount of an escrowed payment that counts for its merchant, in atomic USDC. */
export const OUTCOME_FLOOR = 50_000;

/** By the number of buyers with a release to the wallet in the window. */
export const RELEASE_BANDS: readonly Band[] = [
  { from: 1, points: 1 },
  { from: 3, points: 2 },
  { from: 5, points: 3 },
];

/** Points deducted by refunded buyer-days, in percent of all buyer-days; none if fewer buyers were refunded. */
export const REFUNDS = {
  buyers: 5,
  bands: [
    { from: 5, points: 1 },
    { from: 10, points: 2 },
    { from: 20, points: 3 },
    { from: 35, points: 4 },
    { from: 50, points: 6 },
  ],
} as const satisfies { readonly buyers: number; readonly bands: readonly Band[] };

/** In scope `selective`: the number of look-ups per wallet, and the number of inflows that is too large to read. */
export const LOOKUPS = {
  /** The newest payers of a payee. */
  payersPerPayee: 16,
  /** Distinct payers of all payees together. */
  payers: 128,
  /** The funder of a wallet with more incoming transfers than this is unknown. */
  mostInflows: 10_000,
} as const;

/** The tiers by score, highest first; `unrated` does not depend on the score. E is not used. */
export const TIERS = [
  { tier: "A", from: 90 },
  { tier: "B", from: 78 },
  { tier: "C", from: 55 },
  { tier: "D", from: 26 },
  { tier: "F", from: 0 },
] as const;

export type Tier = (typeof TIERS)[number]["tier"] | "unrated";

/** The highest score a wallet can have while a cap applies to it. */
export const CAP_LIMITS = {
  /** No certificate ever, and fewer qualifying payments than `PAYMENT_CAPABILITY` requires. */
  unrated: 0,
  /** A fresh FAIL of a behavioral test. */
  fresh_fail: 25,
  /** `REQUIREMENTS` of the tier are not met. */
  tier_b_requirements: 77,
  tier_a_requirements: 89,
} as const;

export type CapName = keyof typeof CAP_LIMITS;

/** The requirements of a tier in addition to its points. */
export const REQUIREMENTS = {
  tier_a_requirements: { behavioural_passes: 2, independent_counterparties: 5, active_weeks: 4 },
  tier_b_requirements: { behavioural_passes: 0, independent_counterparties: 3, active_weeks: 2 },
} as const;

/** Returns the points for an amount. */
export const pointsIn = (bands: readonly Band[], amount: number | bigint): number =>
  bands.findLast(({ from }) => amount >= from)?.points ?? 0;

// score_version 2 as data: what the function computes with, and what documentation and pictures are drawn from.

import type { Band } from "../v1/bands.ts";

/** As in version 1, which never changes. */
export {
  type Band,
  BEHAVIOURAL_PASS,
  CAP_LIMITS,
  type CapName,
  COUNTERPARTY_BANDS,
  type ComponentName,
  INDEPENDENCE,
  MAX_PAYEES,
  MAX_POINTS,
  PAYMENT_CAPABILITY,
  PAYMENT_COUNT_BANDS,
  PAYMENT_VALUE_BANDS,
  PAYMENTS_PER_COUNTERPARTY,
  POINTS_PER_WEEK,
  pointsIn,
  QUALIFYING_PAYMENT,
  RECENCY_BANDS,
  REQUIREMENTS,
  TIERS,
  type Tier,
} from "../v1/bands.ts";

export const SCORE_VERSION = 2;

/** An escrowed payment says something about its merchant from this amount on, in atomic USDC: dust does not. */
export const OUTCOME_FLOOR = 50_000;

/** By the number of buyers with a release to the wallet in the window. */
export const RELEASE_BANDS: readonly Band[] = [
  { from: 1, points: 1 },
  { from: 3, points: 2 },
  { from: 5, points: 3 },
];

/** Points deducted by refunded buyer-days in percent of all buyer-days; none for refunds of fewer buyers. */
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

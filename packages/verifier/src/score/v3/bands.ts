// score_version 3 as data: what the function computes with, and what documentation and pictures are drawn from.

/** As in version 2, which never changes. */
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
  OUTCOME_FLOOR,
  PAYMENT_CAPABILITY,
  PAYMENT_COUNT_BANDS,
  PAYMENT_VALUE_BANDS,
  PAYMENTS_PER_COUNTERPARTY,
  POINTS_PER_WEEK,
  pointsIn,
  QUALIFYING_PAYMENT,
  RECENCY_BANDS,
  REFUNDS,
  RELEASE_BANDS,
  REQUIREMENTS,
  TIERS,
  type Tier,
} from "../v2/bands.ts";

export const SCORE_VERSION = 3;

/** In scope `selective`: how much is looked up for one wallet, and when a wallet's inflows are too many to be read. */
export const LOOKUPS = {
  /** The newest payers of a payee. */
  payersPerPayee: 16,
  /** Different payers of all payees together. */
  payers: 128,
  /** A wallet with more transfers to it than this has an unknown funder. */
  mostInflows: 10_000,
} as const;

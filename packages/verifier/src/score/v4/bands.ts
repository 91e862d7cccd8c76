// score_version 4 as data: what the function computes with, and what documentation and pictures are drawn from.

/** As in version 3, which never changes. */
export {
  type Band,
  BEHAVIOURAL_PASS,
  CAP_LIMITS,
  type CapName,
  COUNTERPARTY_BANDS,
  type ComponentName,
  INDEPENDENCE,
  LOOKUPS,
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
} from "../v3/bands.ts";

export const SCORE_VERSION = 4;

import type { CapName, ComponentName } from "../../packages/verifier/src/score/v1/bands.ts";

/** What people read for a component. */
export const COMPONENT_NAMES: Readonly<Record<ComponentName, string>> = {
  payment_capability: "Payment capability",
  scam_resistance: "Scam resistance",
  recipient_awareness: "Recipient awareness",
  independent_counterparties: "Independent counterparties",
  payments: "Payments",
  active_weeks: "Active weeks",
  recency: "Recency",
  escrow_outcomes: "Escrow outcomes",
};

/** What people read for a cap. */
export const CAP_NAMES: Readonly<Record<CapName, string>> = {
  unrated: "No certificate and too few payments",
  fresh_fail: "A fresh FAIL of a behavioural test",
  scope_authorised: "The index cannot show who funded whom",
  tier_b_requirements: "What a B requires is missing",
  tier_a_requirements: "What an A requires is missing",
};

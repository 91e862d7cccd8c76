import type { CapName, ComponentName } from "../../packages/verifier/src/score/bands.ts";

/** A component's name on pages. */
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

/** A cap's name on pages. */
export const CAP_NAMES: Readonly<Record<CapName, string>> = {
  unrated: "No certificate and too few payments",
  fresh_fail: "A fresh FAIL on a behavioral test",
  tier_b_requirements: "A requirement for a B is not met",
  tier_a_requirements: "A requirement for an A is not met",
};

import { CAP_LIMITS, type CapName, PAYMENT_CAPABILITY, REQUIREMENTS, TIERS, type Tier } from "./bands.ts";
import { freshFails, notReversed } from "./certificates.ts";
import type { ScoreFacts } from "./facts.ts";
import { paymentTotals } from "./payments.ts";
import type { Cap } from "./record.ts";

type Requirement = keyof (typeof REQUIREMENTS)["tier_a_requirements"];

/** The wallet's count for each tier requirement. */
export type Achieved = Readonly<Record<Requirement, number>>;

const cap = (name: CapName, because: readonly string[]): Cap => ({ cap: name, limit: CAP_LIMITS[name], because });

/**
 * A tier's requirements apply only if the points would reach the tier; the other caps apply whenever their condition
 * holds.
 */
export function capsOf(facts: ScoreFacts, points: number, achieved: Achieved): readonly Cap[] {
  const fails = freshFails(facts);
  const isKnown =
    notReversed(facts).length > 0 || paymentTotals(facts.chain).count >= PAYMENT_CAPABILITY.qualifyingPayments.from;
  return [
    ...(isKnown ? [] : [cap("unrated", ["no_certificate", "too_few_payments"])]),
    ...(fails.length > 0 ? [cap("fresh_fail", fails)] : []),
    ...requirementCap("tier_b_requirements", points, achieved),
    ...requirementCap("tier_a_requirements", points, achieved),
  ];
}

function requirementCap(name: keyof typeof REQUIREMENTS, points: number, achieved: Achieved): readonly Cap[] {
  const required = REQUIREMENTS[name];
  const unmet = (Object.keys(required) as Requirement[]).filter((one) => achieved[one] < required[one]);
  return points > CAP_LIMITS[name] && unmet.length > 0 ? [cap(name, unmet)] : [];
}

/** Returns the tier for a score and the caps that determined it. */
export function tierOf(score: number, caps: readonly Cap[]): Tier {
  if (caps.some((one) => one.cap === "unrated")) return "unrated";
  return TIERS.find(({ from }) => score >= from)?.tier ?? "F";
}

import { BEHAVIORAL_PASS, PAYMENT_CAPABILITY } from "./bands.ts";
import type { CertificateFact, ScoreFacts } from "./facts.ts";
import { paymentsFact, paymentTotals } from "./payments.ts";
import {
  type BehavioralCapability,
  CAPABILITIES,
  type Capability,
  type Fact,
  type Flag,
  type Judged,
} from "./record.ts";

// `facts` are `inOrder` in this file: certificates are oldest first.

/** What stands of a capability at `as_of`. */
interface Standing {
  readonly certificate: CertificateFact;
  readonly fresh: boolean;
}

/** Reversed certificates count for nothing. */
export const standing = ({ certificates }: ScoreFacts): readonly CertificateFact[] =>
  certificates.filter(({ reversed_at }) => reversed_at === null);

const isFresh = ({ valid_until }: CertificateFact, { as_of }: ScoreFacts): boolean => as_of < valid_until;

/**
 * A capability's fresh FAIL if there is one, else its newest fresh PASS, else its newest certificate; null when
 * untested.
 */
function standingOf(facts: ScoreFacts, capability: Capability): Standing | null {
  const own = standing(facts).filter(({ product }) => product === CAPABILITIES[capability]);
  const newestFresh = (wanted: CertificateFact["result"]) =>
    own.findLast((certificate) => certificate.result === wanted && isFresh(certificate, facts));
  const certificate = newestFresh("fail") ?? newestFresh("pass") ?? own.at(-1);
  return certificate === undefined ? null : { certificate, fresh: isFresh(certificate, facts) };
}

const isExpired = (facts: ScoreFacts, capability: Capability): boolean =>
  standingOf(facts, capability)?.fresh === false;

const BEHAVIORAL: readonly BehavioralCapability[] = ["scam_resistance", "recipient_awareness", "retry_safety"];

const isRetryFail = (facts: ScoreFacts, capability: Capability): boolean =>
  capability === "retry_safety" && standingOf(facts, capability)?.certificate.result === "fail";

/** A flag for each fresh FAIL of a behavioral test. */
export const freshFails = (facts: ScoreFacts): readonly Flag[] =>
  BEHAVIORAL.map((capability) => ({ capability, stands: standingOf(facts, capability) }))
    .filter(({ stands }) => stands?.fresh === true && stands.certificate.result === "fail")
    .map(({ capability }) => `fresh_fail_${capability}` as const);

export const flagsOf = (facts: ScoreFacts): readonly Flag[] => [
  ...freshFails(facts),
  ...(Object.keys(CAPABILITIES) as Capability[])
    .filter((capability) => isExpired(facts, capability))
    .map((name) => `expired_${name}` as const),
];

/**
 * The best of a fresh suite PASS, any other fresh PASS and enough qualifying payments. Retry safety has no points of its
 * own: what speaks against it is shown here.
 */
export function judgePaymentCapability(facts: ScoreFacts): Judged {
  const against = (["can_pay", "full_suite", "retry_safety"] as const)
    .filter((capability) => isExpired(facts, capability) || isRetryFail(facts, capability))
    .flatMap((capability) => factsOf(standingOf(facts, capability), false));
  const passes = standing(facts).filter((one) => one.result === "pass" && isFresh(one, facts));
  const suite = passes.findLast(({ product }) => product === "suite");
  const certificate = suite ?? passes.at(-1);
  if (certificate !== undefined) {
    const points = suite === undefined ? PAYMENT_CAPABILITY.anyFreshPass : PAYMENT_CAPABILITY.freshSuitePass;
    return { points, facts: [...factsOf({ certificate, fresh: true }, true), ...against] };
  }
  const { from, points } = PAYMENT_CAPABILITY.qualifyingPayments;
  const { count } = paymentTotals(facts.chain);
  if (count < from) return { points: 0, facts: against };
  return { points, facts: [...paymentsFact(facts.chain, { considered: count, counts: true }), ...against] };
}

/** A fresh FAIL outweighs every PASS. */
export function judgeBehavior(facts: ScoreFacts, capability: BehavioralCapability): Judged {
  const stands = standingOf(facts, capability);
  const passed = stands?.fresh === true && stands.certificate.result === "pass";
  return { points: passed ? BEHAVIORAL_PASS : 0, facts: factsOf(stands, passed) };
}

function factsOf(stands: Standing | null, counts: boolean): readonly Fact[] {
  if (stands === null) return [];
  const { url, product, result, valid_until } = stands.certificate;
  return [{ kind: "certificate", counts, url, product, result, fresh: stands.fresh, valid_until }];
}

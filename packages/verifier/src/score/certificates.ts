import {
  BEHAVIORAL_PRODUCTS,
  type BehavioralCapability,
  PRODUCT_MENU,
  PRODUCTS,
  type Product,
  productOf,
} from "../vocabulary.ts";
import { BEHAVIORAL_PASS, MAX_POINTS, PAYMENT_CAPABILITY } from "./bands.ts";
import type { CertificateFact, ScoreFacts } from "./facts.ts";
import { paymentsFact, paymentTotals } from "./payments.ts";
import type { Fact, Flag, Judged } from "./record.ts";

// `facts` are `inOrder` in this file: certificates are oldest first.

/** What stands of a capability at `as_of`. */
interface Decisive {
  readonly certificate: CertificateFact;
  readonly fresh: boolean;
}

/** Reversed certificates count for nothing. */
export const notReversed = ({ certificates }: ScoreFacts): readonly CertificateFact[] =>
  certificates.filter(({ reversed_at }) => reversed_at === null);

const isFresh = ({ valid_until }: CertificateFact, { as_of }: ScoreFacts): boolean => as_of < valid_until;

/**
 * A test's fresh FAIL if there is one, else its newest fresh PASS, else its newest certificate; null when
 * untested.
 */
function decisiveOf(facts: ScoreFacts, test: Product): Decisive | null {
  const own = notReversed(facts).filter(({ product }) => product === test);
  const newestFresh = (wanted: CertificateFact["result"]) =>
    own.findLast((certificate) => certificate.result === wanted && isFresh(certificate, facts));
  const certificate = newestFresh("fail") ?? newestFresh("pass") ?? own.at(-1);
  return certificate === undefined ? null : { certificate, fresh: isFresh(certificate, facts) };
}

const isExpired = (facts: ScoreFacts, test: Product): boolean => decisiveOf(facts, test)?.fresh === false;

const isBehavioralFail = (facts: ScoreFacts, test: Product): boolean =>
  PRODUCTS[test].form !== "single" && decisiveOf(facts, test)?.certificate.result === "fail";

/** A flag for each fresh FAIL of a behavioral test. */
export const freshFails = (facts: ScoreFacts): readonly Flag[] =>
  BEHAVIORAL_PRODUCTS.map((test) => ({ test, stands: decisiveOf(facts, test) }))
    .filter(({ stands }) => stands?.fresh === true && stands.certificate.result === "fail")
    .map(({ test }) => `fresh_fail_${PRODUCTS[test].capability}` as const);

export const flagsOf = (facts: ScoreFacts): readonly Flag[] => [
  ...freshFails(facts),
  ...PRODUCT_MENU.filter((test) => isExpired(facts, test)).map(
    (test) => `expired_${PRODUCTS[test].capability}` as const,
  ),
];

/** The tests without points of their own. */
const WITHOUT_POINTS = PRODUCT_MENU.filter((test) => !Object.hasOwn(MAX_POINTS, PRODUCTS[test].capability));

/**
 * The best of a fresh suite PASS, any other fresh PASS and enough qualifying payments. What speaks against a test without
 * points of its own, such as retry safety, is shown here.
 */
export function judgePaymentCapability(facts: ScoreFacts): Judged {
  const against = WITHOUT_POINTS.filter((test) => isExpired(facts, test) || isBehavioralFail(facts, test)).flatMap(
    (test) => factsOf(decisiveOf(facts, test), false),
  );
  const passes = notReversed(facts).filter((one) => one.result === "pass" && isFresh(one, facts));
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
  const stands = decisiveOf(facts, productOf(capability));
  const passed = stands?.fresh === true && stands.certificate.result === "pass";
  return { points: passed ? BEHAVIORAL_PASS : 0, facts: factsOf(stands, passed) };
}

function factsOf(stands: Decisive | null, counts: boolean): readonly Fact[] {
  if (stands === null) return [];
  const { url, product, result, valid_until } = stands.certificate;
  return [{ kind: "certificate", counts, url, product, result, fresh: stands.fresh, valid_until }];
}

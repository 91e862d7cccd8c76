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

/** The certificate that decides a capability at `as_of`. */
interface Decisive {
  readonly certificate: CertificateFact;
  readonly fresh: boolean;
}

/** Returns the certificates that were not reversed; reversed ones do not count. */
export const notReversed = ({ certificates }: ScoreFacts): readonly CertificateFact[] =>
  certificates.filter(({ reversed_at }) => reversed_at === null);

const isFresh = ({ valid_until }: CertificateFact, { as_of }: ScoreFacts): boolean => as_of < valid_until;

/**
 * Returns a test's fresh FAIL if it has one, else its newest fresh PASS, else its newest certificate; null if it was
 * never taken.
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
  BEHAVIORAL_PRODUCTS.map((test) => ({ test, decisive: decisiveOf(facts, test) }))
    .filter(({ decisive }) => decisive?.fresh === true && decisive.certificate.result === "fail")
    .map(({ test }) => `fresh_fail_${PRODUCTS[test].capability}` as const);

export const flagsOf = (facts: ScoreFacts): readonly Flag[] => [
  ...freshFails(facts),
  ...PRODUCT_MENU.filter((test) => isExpired(facts, test)).map(
    (test) => `expired_${PRODUCTS[test].capability}` as const,
  ),
];

/** The tests that earn no points. */
const WITHOUT_POINTS = PRODUCT_MENU.filter((test) => !Object.hasOwn(MAX_POINTS, PRODUCTS[test].capability));

/**
 * The best of a fresh suite PASS, any other fresh PASS, and enough qualifying payments. A FAIL or an expired
 * certificate of a test that earns no points, such as retry safety, is listed here.
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
  const decisive = decisiveOf(facts, productOf(capability));
  const passed = decisive?.fresh === true && decisive.certificate.result === "pass";
  return { points: passed ? BEHAVIORAL_PASS : 0, facts: factsOf(decisive, passed) };
}

function factsOf(decisive: Decisive | null, counts: boolean): readonly Fact[] {
  if (decisive === null) return [];
  const { url, product, result, valid_until } = decisive.certificate;
  return [{ kind: "certificate", counts, url, product, result, fresh: decisive.fresh, valid_until }];
}

import { bytesToHex } from "@noble/hashes/utils.js";
import canonicalize from "canonicalize";
import type { BehavioralCapability } from "../vocabulary.ts";
import {
  CAP_LIMITS,
  type CapName,
  COUNTERPARTY_BANDS,
  type ComponentName,
  INDEPENDENCE,
  MAX_POINTS,
  PAYMENT_CAPABILITY,
  pointsIn,
  REFUNDS,
  RELEASE_BANDS,
  REQUIREMENTS,
  SCORE_VERSION,
  TIERS,
  type Tier,
} from "./bands.ts";
import { flagsOf, freshFails, judgeBehavior, judgePaymentCapability, notReversed } from "./certificates.ts";
import { dayOf, inOrder, type PayeeFact, type ScoreFacts, type SellerExam } from "./facts.ts";
import { activeWeeks, judgePayments, judgeRecency, judgeWeeks, paymentTotals } from "./payments.ts";
import {
  type Assessment,
  type Cap,
  type Component,
  type Evidence,
  type Fact,
  inTransaction,
  type Judged,
  type NotCounted,
  type ScoreDocument,
} from "./record.ts";

type Requirement = keyof (typeof REQUIREMENTS)["tier_a_requirements"];

/** The wallet's count for each tier requirement. */
type Achieved = Readonly<Record<Requirement, number>>;

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
function tierOf(score: number, caps: readonly Cap[]): Tier {
  if (caps.some((one) => one.cap === "unrated")) return "unrated";
  return TIERS.find(({ from }) => score >= from)?.tier ?? "F";
}

/**
 * Computes the risk score of a wallet: a pure function over whole numbers that does not depend on the order of the
 * facts. `facts` satisfy `parseScoreFacts`.
 */
export function score(facts: ScoreFacts): Assessment {
  const ordered = inOrder(facts);
  const components = judge(ordered);
  const points = Object.values(components).reduce((sum, component) => sum + component.points, 0);
  const caps = capsOf(ordered, points, achieved(ordered, components));
  const limited = Math.max(0, Math.min(points, ...caps.map(({ limit }) => limit)));
  const { wallet, as_of, as_of_block } = facts;
  return {
    wallet,
    score: limited,
    tier: tierOf(limited, caps),
    score_version: SCORE_VERSION,
    as_of,
    as_of_block,
    flags: flagsOf(ordered),
    caps,
    components,
    evidence: evidenceOf(
      Object.values(components).flatMap((component) => component.facts),
      facts.chain.network,
    ),
  };
}

/**
 * Returns the risk score record as served, with its facts and their hash. The order of the facts does not change the
 * bytes.
 */
export async function scoreDocument(facts: ScoreFacts): Promise<ScoreDocument> {
  const inputs = inOrder(facts);
  return { ...score(inputs), inputs_sha256: await sha256(inputs), inputs };
}

/** Returns the SHA-256 of the RFC 8785 form, in lowercase hex. */
async function sha256(inputs: ScoreFacts): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonicalize(inputs)));
  return bytesToHex(new Uint8Array(digest));
}

type Components = Assessment["components"];

function judge(facts: ScoreFacts): Components {
  const component = (name: ComponentName, { points, facts }: Judged): Component => ({
    points,
    max: MAX_POINTS[name],
    facts,
  });
  const counterparties = judgeCounterparties(facts);
  const behaviour = (name: Extract<BehavioralCapability, ComponentName>) => component(name, judgeBehavior(facts, name));
  return {
    payment_capability: component("payment_capability", judgePaymentCapability(facts)),
    scam_resistance: behaviour("scam_resistance"),
    recipient_awareness: behaviour("recipient_awareness"),
    independent_counterparties: component("independent_counterparties", counterparties),
    payments: component("payments", judgePayments(facts, counting(counterparties))),
    active_weeks: component("active_weeks", judgeWeeks(facts)),
    recency: component("recency", judgeRecency(facts)),
    escrow_outcomes: component("escrow_outcomes", judgeEscrow(facts)),
  };
}

const counting = ({ facts }: Judged): number => facts.filter(({ counts }) => counts).length;

const achieved = ({ chain }: ScoreFacts, components: Components): Achieved => ({
  behavioural_passes: counting(components.scam_resistance) + counting(components.recipient_awareness),
  independent_counterparties: counting(components.independent_counterparties),
  active_weeks: activeWeeks(chain).length,
});

/** Returns the reason why a payee is not an independent counterparty, or null if it is one. */
function reasonAgainst(payee: PayeeFact, { window, largest_funder }: ScoreFacts["chain"]): NotCounted | null {
  const [value, returned] = [BigInt(payee.value), BigInt(payee.returned)];
  if (value < INDEPENDENCE.floor) return "below_floor";
  if (dayOf(payee.last_at) < window.from) return "outside_window";
  if (returned * 100n >= value * BigInt(INDEPENDENCE.sentBackBelowPercent)) return "reciprocal_flow";
  if (payee.payee === largest_funder || payee.payee === payee.funder_at_floor) return "own_funder";
  return reasonOfFunders(payee);
}

/** Payers with unknown funders do not count; if they could have made a difference, that is the reason. */
function reasonOfFunders({ other_funders, unfunded_payers }: PayeeFact): NotCounted | null {
  if (other_funders >= INDEPENDENCE.otherFunders) return null;
  return other_funders + unfunded_payers >= INDEPENDENCE.otherFunders ? "funder_unknown" : "too_few_funders";
}

/** Lists every examined payee, with the reason if it does not count. */
function judgeCounterparties({ chain }: ScoreFacts): Judged {
  const facts = chain.payees.map((one) => {
    const reason = reasonAgainst(one, chain);
    const { payee, last_tx } = one;
    return { kind: "counterparty", counts: reason === null, payee, reason, ...inTransaction(last_tx) } as const;
  });
  return { points: pointsIn(COUNTERPARTY_BANDS, facts.filter(({ counts }) => counts).length), facts };
}

/**
 * Scores buyers with releases, minus the share of refunds; negative if refunds outweigh them. Exams are listed and
 * never count.
 */
function judgeEscrow({ as_of, chain: { escrow }, seller_exams }: ScoreFacts): Judged {
  const { buyers, release_days, last_release_tx, refunded_buyers, refund_days, last_refund_tx } = escrow;
  const percent = refund_days === 0 ? 0 : Math.floor((100 * refund_days) / (release_days + refund_days));
  const taken = refunded_buyers < REFUNDS.buyers ? 0 : pointsIn(REFUNDS.bands, percent);
  const facts: Fact[] = [];
  if (last_release_tx !== null)
    facts.push({ kind: "releases", counts: true, buyers, days: release_days, ...inTransaction(last_release_tx) });
  if (last_refund_tx !== null) {
    const refunded = { buyers: refunded_buyers, days: refund_days, percent, ...inTransaction(last_refund_tx) };
    facts.push({ kind: "refunds", counts: taken > 0, ...refunded });
  }
  const exams = seller_exams.map((exam) => examFact(exam, as_of));
  return { points: pointsIn(RELEASE_BANDS, buyers) - taken, facts: [...facts, ...exams] };
}

const examFact = ({ id: _, ...exam }: SellerExam, asOf: string): Fact => ({
  kind: "seller_exam",
  counts: false,
  fresh: asOf < exam.valid_until,
  ...exam,
});

/** Returns each page and each transaction once, in the order of the facts. */
function evidenceOf(facts: readonly Fact[], network: string): readonly Evidence[] {
  const urls = facts.flatMap((fact) => ("url" in fact ? [fact.url] : []));
  const transactions = facts.flatMap((fact) => ("transaction" in fact ? [fact.transaction] : []));
  return [
    ...[...new Set(urls)].map((url) => ({ url })),
    ...[...new Set(transactions)].map((one) => ({ network, ...inTransaction(one) })),
  ];
}

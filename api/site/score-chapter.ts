import {
  type Band,
  BEHAVIORAL_PASS,
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
  QUALIFYING_PAYMENT,
  RECENCY_BANDS,
  REFUNDS,
  RELEASE_BANDS,
  REQUIREMENTS,
  SCORE_VERSION,
  TIERS,
} from "../../packages/verifier/src/score/bands.ts";
import { WINDOW_DAYS } from "../../packages/verifier/src/score/facts.ts";
import { BAITED_KINDS, PRODUCTS, suite, totalCost, VALID_FOR_DAYS } from "../certificates/index.ts";
import { feeOf } from "../escrow/index.ts";
import { formatUsd } from "../platform/money.ts";
import { html, type Markup } from "../platform/page/html.ts";

/** A forged payment history. The value is in atomic USDC. */
export interface Forgery {
  readonly counterparties: number;
  readonly payments: number;
  readonly value: bigint;
  readonly weeks: number;
}

/**
 * Two histories that earn an A with all three tests passed and no escrowed sale: one with the fewest wallets, one with
 * the fewest weeks. A test checks both against the score function, just above and just below the threshold.
 */
export const FORGED_A = {
  fewWallets: { counterparties: 8, payments: 25, value: 5_000_000n, weeks: 5 },
  fewWeeks: { counterparties: 20, payments: 20, value: 1_000_000n, weeks: 4 },
} as const satisfies Readonly<Record<string, Forgery>>;

/** The number of wallets in the ring: the agent, its payees, and their shared payers, each with its own funder. */
export const ringSize = ({ counterparties }: Forgery): number => 1 + counterparties + 2 * INDEPENDENCE.otherFunders;

/** The cost of renewing the certificates that an A requires, in atomic USDC. */
export const CERTIFICATES_COST = BAITED_KINDS.filter(
  ({ product }) => PRODUCTS[product].capability in MAX_POINTS,
).reduce((sum, kind) => sum + totalCost(kind), suite.price);

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

const ROW = 38;
const TIER_TOP = 26;
const TIER_HEIGHT = 40;
const ROWS_TOP = TIER_TOP + TIER_HEIGHT + 44;

/** Each tier with its range of scores, lowest first. `to` is the start of the next tier. */
const spans = TIERS.toReversed().map(({ tier, from }, index, all) => ({
  tier,
  from,
  to: all[index + 1]?.from ?? 100,
}));

/** The components in a row. Together they add up to 100. */
const steps = Object.entries(MAX_POINTS).map(([name, points], index, all) => ({
  name,
  points,
  from: all.slice(0, index).reduce((sum, [, before]) => sum + before, 0),
}));

/**
 * Draws the tiers, the maximum of each component, and the limit of each cap on one scale from 0 to 100. Widths are
 * percentages, so the picture stretches with the page while its text keeps its size.
 */
function scorePicture(): Markup {
  const caps = Object.entries(CAP_LIMITS).filter(([, limit]) => limit > 0);
  const capsTop = ROWS_TOP + steps.length * ROW + 40;
  return html`<svg role="img" aria-labelledby="bands-title bands-desc" width="100%" height="${capsTop + caps.length * ROW}" font-size="14">
<title id="bands-title">Tiers, components and caps on a scale from 0 to 100</title>
<desc id="bands-desc">Tiers: ${spans.map(({ tier, from }) => `${tier} from ${from}`).join(", ")}. Components: ${steps.map(({ name, points }) => `${COMPONENT_NAMES[name as keyof typeof MAX_POINTS]} ${points}`).join(", ")}. The tables below list every figure.</desc>
${spans.map(
  ({ tier, from, to }, index) =>
    html`<rect x="${from}%" width="${to - from}%" y="${TIER_TOP}" height="${TIER_HEIGHT}" fill="var(--accent)" fill-opacity="${(0.08 + index * 0.14).toFixed(2)}" stroke="var(--line)"/><text x="${(from + to) / 2}%" y="${TIER_TOP + 26}" text-anchor="middle" font-weight="650" fill="var(--ink)">${tier}</text><text x="${from}%" y="${TIER_TOP - 8}" text-anchor="${from === 0 ? "start" : "middle"}" font-size="12" fill="var(--soft)">${from}</text>`,
)}
${heading("What earns points", ROWS_TOP)}
${steps.map(({ name, from, points }, index) =>
  bar({
    label: `${COMPONENT_NAMES[name as keyof typeof MAX_POINTS]}: ${points}`,
    y: ROWS_TOP + index * ROW,
    from,
    width: points,
    color: "var(--accent)",
  }),
)}
${heading("Highest score under each cap", capsTop)}
${caps.map(([name, limit], index) =>
  bar({
    label: `${CAP_NAMES[name as keyof typeof CAP_LIMITS]}: ${limit}`,
    y: capsTop + index * ROW,
    from: 0,
    width: limit,
    color: "var(--gold)",
  }),
)}
</svg>`;
}

const heading = (text: string, y: number): Markup =>
  html`<text x="0" y="${y - 16}" font-weight="650" fill="var(--ink)">${text}</text>`;

interface Row {
  readonly label: string;
  readonly y: number;
  readonly from: number;
  readonly width: number;
  readonly color: string;
}

const bar = ({ label, y, from, width, color }: Row): Markup =>
  html`<text x="0" y="${y + 12}" fill="var(--soft)">${label}</text><rect x="0" width="100%" y="${y + 19}" height="7" fill="var(--well)"/><rect x="${from}%" width="${width}%" y="${y + 19}" height="7" fill="${color}"/>`;

/*
 * The cost of taking points from a merchant through refunds, and the cost to a merchant of hiding its refunds among
 * releases to itself. The unit is the buyer-day: a UTC day on which a buyer (all payers with the same largest funder)
 * has an outcome. A test checks both against the score function, just above and just below the threshold.
 */

/** Buyer-days of releases of the merchants in the documentation. */
export const SERVED = [0, 10, 100, 1_000] as const;
/** Buyer-days of refunds that a merchant tries to hide. */
export const FAILED = [5, 20, 100] as const;

/** The smallest share of refunds that costs this many points, in percent. */
const percentOf = (points: number): number => REFUNDS.bands.find((band) => band.points >= points)?.from ?? 100;

/** The fewest buyer-days of refunds that cost a merchant this many points, given its buyer-days of releases. */
export function smear(served: number, points: number): number {
  const percent = percentOf(points);
  return Math.max(REFUNDS.buyers, Math.ceil((percent * served) / (100 - percent)));
}

/** The fewest buyer-days of releases that keep these refunds from costing a point. */
export const dilution = (failed: number): number => {
  const percent = percentOf(1);
  return Math.floor((failed * (100 - percent)) / percent) + 1;
};

/** The fees of a merchant that buys from itself on this many buyer-days, in atomic USDC, excluding gas. */
export const dilutionFee = (served: number): bigint => BigInt(served) * feeOf(BigInt(OUTCOME_FLOOR));

const usd = (atomic: number | bigint): string => `${formatUsd(BigInt(atomic))} USDC`;
const ladder = (bands: readonly Band[], amount: (from: number) => string = String): string =>
  bands.map(({ from, points }) => `≥ ${amount(from)}: ${points}`).join(" · ");

const { qualifyingPayments, freshSuitePass, anyFreshPass } = PAYMENT_CAPABILITY;

/** The rule that earns each component's points. */
export const RULES: Readonly<Record<keyof typeof MAX_POINTS, string>> = {
  payment_capability: `Fresh suite PASS: ${freshSuitePass} · any other fresh PASS: ${anyFreshPass} · otherwise, ${qualifyingPayments.from} qualifying payments: ${qualifyingPayments.points}`,
  scam_resistance: `Fresh PASS and no fresh FAIL: ${BEHAVIORAL_PASS}`,
  recipient_awareness: `Fresh PASS and no fresh FAIL: ${BEHAVIORAL_PASS}`,
  independent_counterparties: ladder(COUNTERPARTY_BANDS),
  payments: `The lower of two: count ${ladder(PAYMENT_COUNT_BANDS)}; total ${ladder(PAYMENT_VALUE_BANDS, usd)}. At most ${PAYMENTS_PER_COUNTERPARTY} payments count per independent counterparty`,
  active_weeks: `${POINTS_PER_WEEK} per ISO week with a qualifying payment`,
  recency: `Last qualifying payment: ${RECENCY_BANDS.map(({ withinDays, points }) => `within ${withinDays} days: ${points}`).join(" · ")}`,
  escrow_outcomes: `Buyers whose escrowed payment was released to the wallet: ${ladder(RELEASE_BANDS)}. From ${REFUNDS.buyers} refunded buyers on, the share of refunds subtracts: ${ladder(REFUNDS.bands, (percent) => `${percent}%`)}`,
};

/** Renders the chapter about the risk score. Every figure is a constant of the score function. */
export const scoreChapter = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="score"><h2 id="score">The risk score</h2>
<p class="measure">Version ${SCORE_VERSION} is a pure integer function: the same facts always give the same score. Every score carries its facts, so <code>agent-payment-trust-verifier score</code> can recompute it without us. The facts are certificates and public USDC payments on Base in the last ${WINDOW_DAYS} days.</p>
<figure>${scorePicture()}</figure>
<h3>Components</h3>
<table class="prose stack"><thead><tr><th scope="col">Component</th><th scope="col">Maximum</th><th scope="col">Points</th></tr></thead><tbody>${Object.entries(
  MAX_POINTS,
).map(
  ([name, most]) =>
    html`<tr><th scope="row">${COMPONENT_NAMES[name as keyof typeof MAX_POINTS]}</th><td>${most}</td><td>${RULES[name as keyof typeof MAX_POINTS]}</td></tr>`,
)}</tbody></table>
<p class="measure">A <strong>qualifying payment</strong> is a transfer of at least ${usd(QUALIFYING_PAYMENT)} that the wallet authorized by signature, other than to itself or to this service. An <strong>independent counterparty</strong> is one of the last ${MAX_PAYEES} payees that received at least ${usd(INDEPENDENCE.floor)} from the wallet. It was paid within the window, sent back less than ${INDEPENDENCE.sentBackBelowPercent}% of that, did not fund the wallet, and has payers with at least ${INDEPENDENCE.otherFunders} distinct outside funders. Each payee that does not count is listed with the reason.</p>
<p class="measure">A hold in the escrow is a payment to its merchant. For the merchant, outcomes of at least ${usd(OUTCOME_FLOOR)} within the window count. All payers with the same largest funder are one <strong>buyer</strong>, and each buyer counts once a day for releases and once a day for refunds. Timeouts do not count, nor do refunds of input that the merchant refused. The score also lists the newest PASS and FAIL of the wallet’s <a href="/test/seller">exams as a seller</a>, which earn no points.</p>
${tiersSection()}
${forgerySection()}
${smearSection()}
<h3 id="appeal">How to appeal</h3>
<ol class="measure"><li>Run <code>agent-payment-trust-verifier score score.json</code>. If the facts do not produce the score, it shows the difference, and the mistake is ours.</li>
<li>If a fact is wrong, tell us which one. Each fact cites the certificate or transaction it came from. Write to the contact in <a href="${baseUrl}/.well-known/security.txt">security.txt</a> and include the score’s <code>inputs_sha256</code>.</li>
<li>Correct facts are not removed. A FAIL counts for ${VALID_FOR_DAYS} days, and a PASS does not erase it. If you dispute a FAIL, its certificate shows the digest and the signer and, once the signature has expired, the signature itself.</li></ol>
</section>`;

const tiersSection = (): Markup => html`<h3 id="tiers">Tiers and caps</h3>
<table class="prose stack"><thead><tr><th scope="col">Tier</th><th scope="col">From</th><th scope="col">Also requires</th></tr></thead><tbody>${TIERS.map(
  ({ tier, from }) => html`<tr><th scope="row">${tier}</th><td>${from}</td><td>${needs(tier)}</td></tr>`,
)}<tr><th scope="row">unrated</th><td>0</td><td>No certificate, ever, and fewer than ${qualifyingPayments.from} qualifying payments</td></tr></tbody></table>
<p class="measure">This version does not use E. A cap limits a score regardless of its points, and the response names each cap that applied:</p>
<table><thead><tr><th scope="col">Cap</th><th scope="col">Maximum score</th></tr></thead><tbody>${Object.entries(
  CAP_LIMITS,
).map(
  ([name, limit]) =>
    html`<tr><th scope="row">${CAP_NAMES[name as keyof typeof CAP_LIMITS]} <code class="soft">${name}</code></th><td>${limit}</td></tr>`,
)}</tbody></table>`;

/** Returns the requirements of a tier in addition to its points. */
export function needs(tier: string): string {
  const name = `tier_${tier.toLowerCase()}_requirements`;
  if (!(name in REQUIREMENTS)) return "Nothing else";
  const required = REQUIREMENTS[name as keyof typeof REQUIREMENTS];
  return [
    ...(required.behavioural_passes > 0 ? [`${required.behavioural_passes} behavioral PASSes`] : []),
    `${required.independent_counterparties} independent counterparties`,
    `${required.active_weeks} active weeks`,
  ].join(", ");
}

const required = REQUIREMENTS.tier_a_requirements;
const history = ({ counterparties, payments, value, weeks }: Forgery): string =>
  `${counterparties} payees that look independent, ${payments} payments totaling ${usd(value)}, and ${weeks} different weeks`;

const forgerySection = (): Markup => html`<h3 id="forgery">What it costs to forge an A</h3>
<p class="measure">Little money and a lot of patience. Three tests must actually be passed, at ${usd(CERTIFICATES_COST)} every ${VALID_FOR_DAYS} days; a client that signs anything fails them. An A also requires at least ${required.independent_counterparties} independent counterparties and ${required.active_weeks} weeks, and those minimums alone do not earn enough points. Two histories that do: ${history(FORGED_A.fewWallets)}; or ${history(FORGED_A.fewWeeks)}. A forger who controls every wallet needs a ring of ${ringSize(FORGED_A.fewWallets)} or ${ringSize(FORGED_A.fewWeeks)} wallets, and gas for each transfer; the money itself stays with the forger.</p>
<p class="measure">So an A means that a wallet pays correctly, refuses what it should, and has behaved like a customer, in public, for weeks. It does not show who is behind the wallet. Do not extend more credit on an A than such a ring costs; if more is at stake, look at the counterparties in the record.</p>`;

const [, , many] = SERVED;
const smearSection = (): Markup => html`<h3 id="smear">What it costs to smear a merchant</h3>
<p class="measure">A refund counts only if a delivery that the merchant’s own server signed fails by the published rules, so a merchant that delivers what it sells and refuses bad input cannot be smeared. If a stranger finds input that makes it fail, each buyer-day of refunds takes a purchase of at least ${usd(OUTCOME_FLOOR)}, which is refunded, and the buyers need at least ${REFUNDS.buyers} separate sources of money. A merchant with ${many} good buyer-days loses its first point after ${smear(many, 1)} refunded ones, and ${REFUNDS.bands.at(-1)?.points} points after ${smear(many, 6)}.</p>`;

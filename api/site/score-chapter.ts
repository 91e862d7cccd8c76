import {
  type Band,
  BEHAVIOURAL_PASS,
  CAP_LIMITS,
  COUNTERPARTY_BANDS,
  INDEPENDENCE,
  MAX_PAYEES,
  MAX_POINTS,
  PAYMENT_CAPABILITY,
  PAYMENT_COUNT_BANDS,
  PAYMENT_VALUE_BANDS,
  PAYMENTS_PER_COUNTERPARTY,
  POINTS_PER_WEEK,
  QUALIFYING_PAYMENT,
  RECENCY_BANDS,
  REFUND_PENALTY,
  RELEASE_BANDS,
  REQUIREMENTS,
  SCORE_VERSION,
  TIERS,
} from "../../packages/verifier/src/score/v1/bands.ts";
import { WINDOW_DAYS } from "../../packages/verifier/src/score/v1/facts.ts";
import { VALID_FOR_DAYS } from "../certification/certificate.ts";
import { formatUsd } from "../kernel/money.ts";
import { html, type Markup } from "../layout/html.ts";
import { CERTIFICATES_COST, FORGED_A, type Forgery, ringSize } from "./forgery.ts";
import { CAP_NAMES, COMPONENT_NAMES } from "./score-names.ts";
import { scorePicture } from "./score-picture.ts";

const usd = (atomic: number | bigint): string => `${formatUsd(BigInt(atomic))} USDC`;
const ladder = (bands: readonly Band[], amount: (from: number) => string = String): string =>
  bands.map(({ from, points }) => `≥ ${amount(from)}: ${points}`).join(" · ");

const { qualifyingPayments, freshSuitePass, anyFreshPass } = PAYMENT_CAPABILITY;

/** What gives the points of a component. */
export const RULES: Readonly<Record<keyof typeof MAX_POINTS, string>> = {
  payment_capability: `A fresh PASS of the suite ${freshSuitePass} · any other fresh PASS ${anyFreshPass} · else ${qualifyingPayments.from} qualifying payments ${qualifyingPayments.points}`,
  scam_resistance: `A fresh PASS ${BEHAVIOURAL_PASS}, and no fresh FAIL`,
  recipient_awareness: `A fresh PASS ${BEHAVIOURAL_PASS}, and no fresh FAIL`,
  independent_counterparties: ladder(COUNTERPARTY_BANDS),
  payments: `The fewer of: number ${ladder(PAYMENT_COUNT_BANDS)}; sum ${ladder(PAYMENT_VALUE_BANDS, usd)}. At most ${PAYMENTS_PER_COUNTERPARTY} payments are counted for each independent counterparty`,
  active_weeks: `${POINTS_PER_WEEK} for each ISO week with a qualifying payment`,
  recency: `Last qualifying payment: ${RECENCY_BANDS.map(({ withinDays, points }) => `within ${withinDays} days ${points}`).join(" · ")}`,
  escrow_outcomes: `Payers who released to the wallet: ${ladder(RELEASE_BANDS)}. A refund against it takes ${REFUND_PENALTY.each}, at most ${REFUND_PENALTY.most}`,
};

/** The chapter about the risk score: every figure is one that the score computes with. */
export const scoreChapter = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="score"><h2 id="score">The score</h2>
<p class="measure">Version ${SCORE_VERSION} is a pure function in whole numbers: the same facts give the same score, and every score carries its facts, so that <code>agent-payment-trust-verifier score</code> computes it again without us. It reads certificates, and public USDC payments on Base in the last ${WINDOW_DAYS} days.</p>
<figure>${scorePicture()}</figure>
<h3>Components</h3>
<table class="prose stack"><thead><tr><th scope="col">Component</th><th scope="col">At most</th><th scope="col">Points</th></tr></thead><tbody>${Object.entries(
  MAX_POINTS,
).map(
  ([name, most]) =>
    html`<tr><th scope="row">${COMPONENT_NAMES[name as keyof typeof MAX_POINTS]}</th><td>${most}</td><td>${RULES[name as keyof typeof MAX_POINTS]}</td></tr>`,
)}</tbody></table>
<p class="measure">A <strong>qualifying payment</strong> is USDC of at least ${usd(QUALIFYING_PAYMENT)} that the wallet authorised by signature, not to itself and not to this service. An <strong>independent counterparty</strong> is one of the last ${MAX_PAYEES} payees that had ${usd(INDEPENDENCE.floor)} or more from the wallet, was paid in the window, sent back less than ${INDEPENDENCE.sentBackBelowPercent} % of it, did not fund the wallet, and whose own payers were funded by at least ${INDEPENDENCE.otherFunders} different others. A payee that does not count is listed with the reason.</p>
${tiersSection()}
${forgerySection()}
<h3 id="appeal">How to appeal</h3>
<ol class="measure"><li>Run <code>agent-payment-trust-verifier score score.json</code>. When the facts do not give the score, it names the difference: that is our mistake.</li>
<li>When a fact is wrong, name it: each one carries the certificate or the transaction that it was taken from. Write to the contact in <a href="${baseUrl}/.well-known/security.txt">security.txt</a> with the score’s <code>inputs_sha256</code>.</li>
<li>A fact that is right is not removed. A FAIL counts for ${VALID_FOR_DAYS} days and then no longer; a PASS does not erase it. Whoever says that a FAIL is ours to answer for finds its digest and signer on the certificate, and after its expiry the whole signature.</li></ol>
</section>`;

const tiersSection = (): Markup => html`<h3 id="tiers">Tiers and caps</h3>
<table class="prose stack"><thead><tr><th scope="col">Tier</th><th scope="col">From</th><th scope="col">It also needs</th></tr></thead><tbody>${TIERS.map(
  ({ tier, from }) => html`<tr><th scope="row">${tier}</th><td>${from}</td><td>${needs(tier)}</td></tr>`,
)}<tr><th scope="row">unrated</th><td>0</td><td>No certificate ever, and fewer than ${qualifyingPayments.from} qualifying payments</td></tr></tbody></table>
<p class="measure">E is not used in this version. A cap holds a score down whatever its points are, and the answer names each that applied:</p>
<table><thead><tr><th scope="col">Cap</th><th scope="col">The score is at most</th></tr></thead><tbody>${Object.entries(
  CAP_LIMITS,
).map(
  ([name, limit]) =>
    html`<tr><th scope="row">${CAP_NAMES[name as keyof typeof CAP_LIMITS]} <code class="soft">${name}</code></th><td>${limit}</td></tr>`,
)}</tbody></table>`;

/** What a tier needs besides its points. */
export function needs(tier: string): string {
  const name = `tier_${tier.toLowerCase()}_requirements`;
  if (!(name in REQUIREMENTS)) return "Nothing more";
  const required = REQUIREMENTS[name as keyof typeof REQUIREMENTS];
  return [
    ...(required.behavioural_passes > 0 ? [`${required.behavioural_passes} behavioural PASSes`] : []),
    `${required.independent_counterparties} independent counterparties`,
    `${required.active_weeks} active weeks`,
  ].join(", ");
}

const required = REQUIREMENTS.tier_a_requirements;
const history = ({ counterparties, payments, value, weeks }: Forgery): string =>
  `${counterparties} payees that look independent, ${payments} payments of ${usd(value)} in all, and ${weeks} different weeks`;

const forgerySection = (): Markup => html`<h3 id="forgery">What it costs to forge an A</h3>
<p class="measure">Little money and much patience. Three tests must really be passed, for ${usd(CERTIFICATES_COST)} every ${VALID_FOR_DAYS} days: a client that signs anything fails them. Beside them it takes at least ${required.independent_counterparties} independent counterparties and ${required.active_weeks} weeks, and the points are not there with so few. Two histories that are enough: ${history(FORGED_A.fewWallets)}; or ${history(FORGED_A.fewWeeks)}. With wallets of one’s own these are rings of ${ringSize(FORGED_A.fewWallets)} and ${ringSize(FORGED_A.fewWeeks)}, gas for each transfer, and money that stays in the forger’s hands.</p>
<p class="measure">So an A says that a wallet pays correctly, refuses what it should, and has behaved like a customer for weeks, in public. It does not say who is behind it. Do not extend more credit on an A than such a ring costs; look at the counterparties in the record when more is at stake.</p>`;

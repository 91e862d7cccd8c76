import { COUNTERPARTY_FLOOR } from "../../platform/index/activity.ts";
import { counted, html, longDay, type Markup } from "../../platform/page/html.ts";
import { facts, mark, renderPage, verifyForm } from "../../platform/page/page.ts";
import { titleOf } from "../products.ts";
import type { VerificationRecord } from "../verification.ts";

export function renderVerification(record: VerificationRecord): string {
  const verdict = record.verified ? "Verified" : record.certs.length > 0 ? "Not verified" : "Not tested";
  return renderPage({
    title: `${verdict}: ${record.wallet}`,
    description: record.reasons[0]?.text ?? record.verified_means,
    current: "/#verify",
    main: html`<article class="deed ${tone(record)}"><p class="eyebrow">Wallet</p>
<p class="mono">${record.wallet}</p>
<h1>${mark(tone(record), verdict)}</h1>
${stateOf(record)}</article>
${certificatesSection(record.certs)}
${activitySection(record.activity)}
<section aria-labelledby="credential"><h2 id="credential">Portable credential</h2>
<p class="measure">The same record as a <a href="/credential/${record.wallet}">signed credential (JSON)</a>. Anyone can check it offline against our <a href="/.well-known/jwks.json">public keys (JSON)</a>.</p></section>
<section aria-labelledby="again"><h2 id="again">Check another wallet</h2>${verifyForm()}</section>`,
  });
}

const MOST_REASONS = 5;

/** Renders what verified means, or why the wallet is not verified. */
function stateOf({ reasons, verified_means }: VerificationRecord): Markup {
  if (reasons.length === 0) return html`<p class="state">${verified_means}</p>`;
  const more = reasons.length - MOST_REASONS;
  return html`${reasons.slice(0, MOST_REASONS).map(reasonLine)}
${more > 0 && html`<p>And ${more} more: see the certificates below.</p>`}`;
}

const reasonLine = ({ text, cert_url, issued }: VerificationRecord["reasons"][number]): Markup =>
  html`<p class="state">${text}${
    cert_url !== null &&
    issued !== null &&
    html` <a href="${cert_url}">See the certificate from ${longDay(new Date(issued))}</a>.`
  }</p>`;

const tone = (record: VerificationRecord) => (record.verified ? "pass" : record.certs.length > 0 ? "fail" : "gray");
const certificateRow = ({
  product,
  level,
  result,
  fresh,
  age_days,
  cert_url,
}: VerificationRecord["certs"][number]): Markup => html`<li><a href="${cert_url}">${titleOf(product)}: ${level}</a>
${mark(fresh ? result : "gray", result.toUpperCase())}
<span class="note soft small">${fresh ? "Fresh" : "No longer fresh"}, ${counted(age_days, "day")} old</span></li>`;

const certificatesSection = (
  certs: VerificationRecord["certs"],
): Markup => html`<section aria-labelledby="certificates"><h2 id="certificates">Certificates</h2>
${
  certs.length === 0
    ? html`<p>None that counts. The agent can <a href="/inspect">take a test</a>.</p>`
    : html`<ul class="rows">${certs.map(certificateRow)}</ul>`
}</section>`;

const known = (count: number | null): string => count?.toLocaleString("en-US") ?? "unknown";

function lastSeen({ last_seen_days, settled_payments }: VerificationRecord["activity"]): string {
  if (last_seen_days === null) return settled_payments === null ? "unknown" : "not in this period";
  return last_seen_days === 0 ? "today" : `${counted(last_seen_days, "day")} ago`;
}

const activitySection = (
  activity: VerificationRecord["activity"],
): Markup => html`<section aria-labelledby="activity"><h2 id="activity">On-chain activity</h2>
${facts(
  [
    [`Payments settled in the last ${activity.window_days} days`, known(activity.settled_payments)],
    [
      `Distinct counterparties, by transfers of ${COUNTERPARTY_FLOOR} USDC or more`,
      known(activity.distinct_counterparties),
    ],
    ["Last seen", lastSeen(activity)],
  ],
  "ruled",
)}<p class="soft small">${activity.note}</p></section>`;

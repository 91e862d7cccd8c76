import { titleOf } from "../certificates/products.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import { html, instant, type Markup } from "../platform/page/html.ts";
import { facts, renderPage } from "../platform/page/page.ts";
import { barChart, shortDay } from "./chart.ts";
import { type Statistics, WINDOW_DAYS } from "./statistics.ts";
import { MINIMUM_WALLETS } from "./withhold.ts";

const WITHHELD = html`<span class="soft small">withheld</span>`;
const whole = (value: number | null): Markup => (value === null ? WITHHELD : html`${value.toLocaleString("en-US")}`);
/** An amount with thousands separators: 25,000.00. */
const money = (usd: string): string => usd.replace(/\B(?=(\d{3})+\.)/g, ",");

const nameOf = (network: Network): string => {
  const { name, isTest } = NETWORKS[network];
  return isTest ? `${name} (test money)` : name;
};

/** The statistics page; `statisticsDocument` gives the same as JSON. */
export const renderStatistics = (statistics: Statistics, baseUrl: string): string =>
  renderPage({
    title: "Statistics",
    description: "Anonymous totals: agents certified, certificates by test and result, payments settled.",
    canonical: `${baseUrl}/stats`,
    current: "/stats",
    jsonUrl: `${baseUrl}/stats?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Statistics</p>
<h1>What agents have proven</h1>
<p class="lead">Totals only: no wallets, no transactions. Counted ${instant(statistics.countedAt)}. Also available <a href="/stats?format=json">as JSON</a>.</p></div>
${totalsSection(statistics)}
${productsSection(statistics)}
${daysSection(statistics)}
${anonymitySection()}`,
  });

const totalsSection = ({
  wallets,
  certificates,
  sellers,
  payments,
}: Statistics): Markup => html`<section aria-labelledby="totals"><h2 id="totals">Totals</h2>
${facts(
  [
    ["Certified now", html`<strong>${whole(wallets.certified)}</strong> (<a href="/board">the board</a>)`],
    ["Wallets ever tested", whole(wallets.tested)],
    ["Certificates ever issued", whole(certificates)],
    ["Sellers certified now", html`${whole(sellers.certified)} (<a href="/board?capability=seller">the sellers</a>)`],
    ["Sellers ever examined", whole(sellers.tested)],
    [
      "Exams of sellers",
      html`${whole(sellers.certificates)}: passed ${whole(sellers.passed)}, failed ${whole(sellers.failed)}`,
    ],
    ...payments.flatMap(({ network, settled, volume }) =>
      settled === 0 && network !== MAIN_NETWORK
        ? []
        : [
            [`Payments on ${nameOf(network)}`, whole(settled)] as const,
            [`Volume on ${nameOf(network)}`, `${money(formatUsd(volume))} USDC`] as const,
          ],
    ),
  ],
  "ruled short",
)}</section>`;

/** 0.0417 → 4.2 %. */
const share = (value: number): string => `${(value * 100).toFixed(1)}%`;

const productsSection = ({
  products,
}: Statistics): Markup => html`<section aria-labelledby="products"><h2 id="products">Certificates by test</h2>
<table><thead><tr><th scope="col">Test</th><th scope="col">Passed</th><th scope="col">Failed</th><th scope="col">Failure rate</th></tr></thead><tbody>${products.map(
  ({ product, certificates, passed, failed, failureShare }) =>
    html`<tr><th scope="row">${titleOf(product)}<br><span class="soft small">${certificates === null ? "count withheld" : `${certificates.toLocaleString("en-US")} in total`}</span></th><td>${whole(passed)}</td><td>${whole(failed)}</td><td>${
      failureShare !== null
        ? share(failureShare)
        : passed === null
          ? WITHHELD
          : html`<span class="soft">none yet</span>`
    }</td></tr>`,
)}</tbody></table>
<p class="soft small">All certificates ever issued, except those whose settlement the chain has dropped. The failure rate is the share of a test’s certificates that failed.</p></section>`;

const daysSection = ({ days }: Statistics): Markup => {
  const bars = days.map(({ day, certificates }) => ({ day, value: certificates }));
  const withheld = bars.some(({ value }) => value === null);
  return html`<section aria-labelledby="days"><h2 id="days">The last ${WINDOW_DAYS} days</h2>
<figure>${barChart(bars, "Certificates per day")}</figure>
<p class="soft small">Days are in UTC; today is still in progress.${withheld && html` A dashed box marks a day whose count is <a href="#anonymous">withheld</a>.`}</p>
<details class="hero"><summary>The same figures as a table</summary>
<table><thead><tr><th scope="col">Day (UTC)</th><th scope="col">Certificates</th></tr></thead><tbody>${bars
    .toReversed()
    .map(
      ({ day, value }) =>
        html`<tr><th scope="row"><time datetime="${day}">${shortDay(day)}</time></th><td>${whole(value)}</td></tr>`,
    )}</tbody></table></details></section>`;
};

const anonymitySection =
  (): Markup => html`<section aria-labelledby="anonymous"><h2 id="anonymous">What anonymous means here</h2>
<div class="two"><div><h3>It means</h3><ul>
<li>No wallet, transaction or certificate is named.</li>
<li>Totals are always shown. A breakdown by test, by result or by day is withheld when it covers fewer than ${MINIMUM_WALLETS} different wallets.</li>
<li>Other figures, including zeros, are withheld along with it, so that nobody can work it out from the total and the rest.</li>
<li>Passed and failed are shown only when each covers at least ${MINIMUM_WALLETS} wallets or none, so that neither can be worked out from the other.</li>
</ul></div><div><h3>It does not mean</h3><ul>
<li>That certificates are secret. Anyone who knows a wallet can <a href="/#verify">read its record</a>, and <a href="/board">the board</a> lists every certified wallet.</li>
<li>That payments are secret. They are on a public chain, where anyone can count them, and an amount often reveals what was bought.</li>
</ul></div></div></section>`;

import { titleOf } from "../certificates/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import { counted, html, instant, type Markup } from "../platform/page/html.ts";
import { facts, renderPage } from "../platform/page/page.ts";
import { MINIMUM_WALLETS } from "./board.ts";
import { type Statistics, WINDOW_DAYS } from "./statistics.ts";

export interface Bar {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** Null if the figure is withheld. */
  readonly value: number | null;
}

const HEIGHT = 262;
const TOP = 38;
const BASE = 208;
/** Widths are percentages, so the picture stretches with the page while its text keeps its size. */
const LEFT = 12;
const MOST_TICKS = 4;
const WITHHELD_HEIGHT = 7;

const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** `2026-11-21` → 21 Nov. */
const shortDay = (day: string): string => SHORT.format(new Date(`${day}T00:00:00Z`));

/** Integers from 0, evenly spaced in steps of 1, 2 or 5 times a power of ten; the last is at least `highest`. */
function ticks(highest: number): readonly number[] {
  const steps = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const step = steps.find((size) => size * MOST_TICKS >= highest) ?? highest;
  return Array.from({ length: Math.max(1, Math.ceil(highest / step)) + 1 }, (_, index) => index * step);
}

/**
 * Draws a bar chart of the days as SVG, with a title, a description, and named axes. A table on the page has the same
 * figures.
 */
function barChart(bars: readonly Bar[], title: string): Markup {
  const scale = ticks(Math.max(...bars.map(({ value }) => value ?? 0)));
  const most = scale.at(-1) ?? 1;
  const y = (value: number): string => (BASE - (value / most) * (BASE - TOP)).toFixed(1);
  const slot = (100 - LEFT) / bars.length;
  return html`<svg role="img" aria-labelledby="chart-title chart-desc" width="100%" height="${HEIGHT}" font-size="13">
<title id="chart-title">${title}</title><desc id="chart-desc">${description(bars)}</desc>
<g fill="var(--soft)"><text x="0" y="16">${title}</text>
${scale.map(
  (value) =>
    html`<line x1="${LEFT}%" x2="100%" y1="${y(value)}" y2="${y(value)}" stroke="${value === 0 ? "var(--soft)" : "var(--line)"}"/><text x="${LEFT - 1.5}%" y="${y(value)}" dy="4" text-anchor="end">${value.toLocaleString("en-US")}</text>`,
)}
${dayLabels(bars, slot)}
<text x="${(100 + LEFT) / 2}%" y="${BASE + 46}" text-anchor="middle">Day (UTC)</text></g>
${bars.map(({ value }, index) => {
  const place = html`x="${(LEFT + (index + 0.15) * slot).toFixed(2)}%" width="${(0.7 * slot).toFixed(2)}%"`;
  return value === null
    ? html`<rect ${place} y="${BASE - WITHHELD_HEIGHT}" height="${WITHHELD_HEIGHT}" fill="none" stroke="var(--soft)" stroke-dasharray="2 2"/>`
    : html`<rect ${place} y="${y(value)}" height="${(BASE - Number(y(value))).toFixed(1)}" fill="var(--accent)"/>`;
})}
</svg>`;
}

const dayLabels = (bars: readonly Bar[], slot: number): readonly Markup[] =>
  [
    { index: 0, anchor: "start", x: LEFT },
    { index: Math.floor(bars.length / 2), anchor: "middle", x: LEFT + (Math.floor(bars.length / 2) + 0.5) * slot },
    { index: bars.length - 1, anchor: "end", x: 100 },
  ].map(({ index, anchor, x }) => {
    const bar = bars[index];
    return html`<text x="${x.toFixed(2)}%" y="${BASE + 20}" text-anchor="${anchor}">${bar && shortDay(bar.day)}</text>`;
  });

function description(bars: readonly Bar[]): string {
  const known = bars.flatMap(({ day, value }) => (value === null ? [] : [{ day, value }]));
  const highest = known.toSorted((a, b) => b.value - a.value)[0];
  const withheld = bars.length - known.length;
  const [first, last] = [bars[0], bars.at(-1)];
  return [
    `${bars.length} bars, one per day, from ${first && shortDay(first.day)} to ${last && shortDay(last.day)}.`,
    highest === undefined || highest.value === 0
      ? "All of them are zero."
      : `The highest is ${highest.value.toLocaleString("en-US")} on ${shortDay(highest.day)}.`,
    ...(withheld === 0 ? [] : [`${counted(withheld, "day is", "days are")} withheld, shown as dashed boxes.`]),
    "The table below lists every figure.",
  ].join(" ");
}

const WITHHELD = html`<span class="soft small">withheld</span>`;
const whole = (value: number | null): Markup => (value === null ? WITHHELD : html`${value.toLocaleString("en-US")}`);
/** An amount with thousands separators: 25,000.00. */
const money = (usd: string): string => usd.replace(/\B(?=(\d{3})+\.)/g, ",");

const nameOf = (network: Network): string => {
  const { name, isTest } = NETWORKS[network];
  return isTest ? `${name} (test money)` : name;
};

/** Renders the statistics page. `statisticsDocument` returns the same as JSON. */
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
<li>Totals are always shown. A breakdown by test, by result or by day is withheld if it covers fewer than ${MINIMUM_WALLETS} different wallets.</li>
<li>Other figures, including zeros, are withheld with it, so that it cannot be worked out from the total and the rest.</li>
<li>Passed and failed are shown only if each covers no wallets or at least ${MINIMUM_WALLETS}, so that one cannot be worked out from the other.</li>
</ul></div><div><h3>It does not mean</h3><ul>
<li>That certificates are secret. Anyone who knows a wallet can <a href="/#verify">read its record</a>, and <a href="/board">the board</a> lists every certified wallet.</li>
<li>That payments are secret. They are on a public chain, where anyone can count them, and an amount often reveals what was bought.</li>
</ul></div></div></section>`;

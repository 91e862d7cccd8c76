import { npxCommand, VERIFIER } from "../../platform/packages.ts";
import { html, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, mark, renderPage } from "../../platform/page/page.ts";
import { type arbiterOverview, EXAMPLE_INPUT, LOG_PATH, POLICY_PATH, policyPath } from "../overview.ts";
import { VERDICT_TONES } from "./policy-page.ts";

type Overview = ReturnType<typeof arbiterOverview>;
type Item = Overview["corrections"]["latest"][number];

/** Renders the arbiter's page. */
export const renderArbiter = (overview: Overview, baseUrl: string): string =>
  renderPage({
    title: "Arbiter",
    description: overview.what,
    canonical: `${baseUrl}/arbiter`,
    jsonUrl: `${baseUrl}/arbiter?format=json`,
    current: "/arbiter",
    main: html`<div class="hero"><p class="eyebrow">External arbiter</p>
<h1>Was it delivered?</h1>
<p class="lead">${overview.what}</p>
<p class="actions"><a class="button" href="${POLICY_PATH}">Read the policy</a></p></div>
<section aria-labelledby="products"><h2 id="products">Verdicts</h2>
<ul class="rows">${overview.products.map(
      ({ what, price, method, url }) =>
        html`<li><h3>${what}</h3><span class="price">${price} USDC</span><code class="note soft">${method} ${new URL(url).pathname}</code></li>`,
    )}</ul>
${codeBlock({ id: "claim", caption: "A claim", language: "json", text: JSON.stringify(EXAMPLE_INPUT.plain, null, 2) })}</section>
<section aria-labelledby="categories"><h2 id="categories">What it verifies</h2>
<ul class="rows">${overview.categories.map(
      ({ name, summary, policy_version: version }) =>
        html`<li><h3><a href="${policyPath(version)}#${name}"><code>${name}</code></a></h3><span class="note soft">${summary}</span></li>`,
    )}</ul></section>
${attestationSection(overview, baseUrl)}
${verdictsSection(overview)}
${correctionsSection(overview)}
<p class="soft small">Also available <a href="/arbiter?format=json">as JSON</a>.</p>`,
  });

const attestationSection = (
  { attestation, claim, jobs }: Overview,
  baseUrl: string,
): Markup => html`<section aria-labelledby="check"><h2 id="check">Check a verdict</h2>
<p class="measure">Every verdict is signed twice: with the service’s Ed25519 key, for programs, and as EIP-712 typed data, for contracts, which check it with <code>${attestation.contract}</code>.</p>
${facts(
  [
    ["EIP-712 signer", html`<code>${attestation.signer}</code>`],
    ["Conditions hash", claim.conditions_sha256],
    ...(jobs === null ? [] : [["ERC-8183 jobs", html`<code>${jobs.address}</code>`] as const]),
    ["Check offline", html`<code>${npxCommand(baseUrl, VERIFIER)} verdict.json --issuer ${baseUrl}</code>`],
  ],
  "ruled",
)}</section>`;

const verdictsSection = ({
  verdicts,
  log,
}: Overview): Markup => html`<section aria-labelledby="log"><h2 id="log">All verdicts</h2>
<p class="measure">Every verdict, with its corrections, is an entry of the append-only <a href="/log">transparency log</a>, which proves that none was changed or removed. The <a href="${LOG_PATH}">list of verdicts (JSON)</a> has them all.</p>
${facts(
  [
    ["Released", verdicts.release],
    ["Refunded", verdicts.refund],
    ["Escalated", verdicts.escalate],
    ["Latest", log.head === null ? "none yet" : itemLink(log.head)],
  ],
  "ruled",
)}</section>`;

const correctionsSection = ({
  corrections,
}: Overview): Markup => html`<section aria-labelledby="corrections"><h2 id="corrections">Corrections</h2>
<p class="measure">Within ${corrections.window_days} days, either party may request a review. A wrong verdict stays on record, and a new one supersedes it.</p>
${
  corrections.latest.length === 0
    ? html`<p class="soft">None yet.</p>`
    : html`<ul class="rows">${corrections.latest.map(
        (item) =>
          html`<li>${itemLink(item)}<span class="note soft">supersedes <a class="mono" href="${path(item.supersedes_url)}">${item.supersedes}</a></span></li>`,
      )}</ul>`
}</section>`;

const path = (url = ""): string => new URL(url).pathname;

const itemLink = ({ verdict, verdict_url, id }: Item): Markup =>
  html`<span>${mark(VERDICT_TONES[verdict], verdict)} <a class="mono" href="${path(verdict_url)}">${id}</a></span>`;

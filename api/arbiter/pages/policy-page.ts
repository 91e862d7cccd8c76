import { type LogPlace, logSection } from "../../log/index.ts";
import { html, type Markup } from "../../platform/page/html.ts";
import { mark, renderPage } from "../../platform/page/page.ts";
import type { ConditionResult, DecisionRow, Policy, PolicyCategory, Verdict } from "../policy/policy.ts";

const RESULT_TONES = { true: "pass", false: "fail", unknown: "gray" } as const satisfies Record<
  ConditionResult,
  string
>;
export const VERDICT_TONES = { release: "pass", refund: "fail", escalate: "gray" } as const satisfies Record<
  Verdict,
  string
>;

/** Renders the result of a condition as a word with its symbol. */
export const resultMark = (result: ConditionResult): Markup => mark(RESULT_TONES[result], result);

/** Renders the name of a condition, with line breaks allowed after underscores. */
export const conditionName = (name: string): Markup =>
  html`<code>${name.split("_").map((part, at) => html`${at > 0 && html`_<wbr>`}${part}`)}</code>`;

export interface PolicyPlace {
  readonly baseUrl: string;
  /** The path of the page, with its query. */
  readonly path: string;
  /** The paths of the previous and next versions; null if there is none. */
  readonly before: string | null;
  readonly after: string | null;
  /** The version's places in the log. */
  readonly places: readonly LogPlace[];
}

/** Renders the policy's page. */
export const renderPolicy = (policy: Policy, { baseUrl, path, before, after, places }: PolicyPlace): string =>
  renderPage({
    title: `Arbiter policy, version ${policy.version}`,
    description: policy.role,
    canonical: `${baseUrl}${path}`,
    jsonUrl: `${baseUrl}${asJson(path)}`,
    main: html`<div class="hero"><p class="eyebrow">Arbiter policy</p>
<h1>The rules, version ${policy.version}</h1>
<p class="lead">${policy.role}</p>
<p class="soft">Applies to deals from ${policy.effective_date}. Status: ${policy.status}. A version is never edited: changes go into a new one.</p>
${(before ?? after) !== null && html`<p class="soft small">${before !== null && html`<a href="${before}">Previous version</a>`}${before !== null && after !== null && html` · `}${after !== null && html`<a href="${after}">Next version</a>`}</p>`}</div>
<section aria-labelledby="rules"><h2 id="rules">Rules</h2>
<ol class="rules">${policy.rules.map(
      ({ number, title, text }) => html`<li id="rule-${number}"><h3>${title}</h3><p class="measure">${text}</p></li>`,
    )}</ol></section>
<section aria-labelledby="decision"><h2 id="decision">How a verdict is decided</h2>
<table><thead><tr><th scope="col">When</th><th scope="col">Verdict</th></tr></thead><tbody>${policy.decision.map(
      ({ when, verdict }) =>
        html`<tr><th scope="row">${when}</th><td>${mark(VERDICT_TONES[verdict], verdict)}</td></tr>`,
    )}</tbody></table></section>
${policy.categories.map(categorySection)}
${logSection(places)}
<p class="soft small">Also available <a href="${asJson(path)}">as JSON</a>.</p>`,
  });

const asJson = (path: string): string => `${path}${path.includes("?") ? "&" : "?"}format=json`;

const categorySection = (category: PolicyCategory): Markup => html`<section aria-labelledby="${category.name}">
<h2 id="${category.name}"><code>${category.name}</code></h2>
<p class="measure">${category.summary}</p>
<table class="terms prose"><thead><tr><th scope="col">Condition</th><th scope="col">Meaning</th></tr></thead><tbody>${category.conditions.map(
  ({ name, required, means }) =>
    html`<tr><th scope="row">${conditionName(name)}${required && html`<br><span class="soft small">required</span>`}</th><td>${means}</td></tr>`,
)}</tbody></table>
<table class="terms"><thead><tr><th scope="col">Condition</th><th scope="col">Observed</th><th scope="col">Result</th></tr></thead><tbody>${category.table.map(row)}</tbody></table></section>`;

const row = ({ condition, observed, result }: DecisionRow): Markup =>
  html`<tr><th scope="row">${conditionName(condition)}</th><td>${observed}</td><td>${resultMark(result)}</td></tr>`;

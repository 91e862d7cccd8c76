import { type LogPlace, logSection } from "../../log/index.ts";
import { npxCommand, VERIFIER } from "../../platform/packages.ts";
import { html, instant, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, renderPage } from "../../platform/page/page.ts";
import { type VerdictDocument, verdictPath } from "../document.ts";
import type { Fact } from "../facts.ts";
import { policyPath } from "../overview.ts";
import type { StoredVerdict } from "../store.ts";
import { conditionName, resultMark, VERDICT_TONES } from "./policy-page.ts";

const HEADINGS = { release: "Release", refund: "Refund", escalate: "Escalate" } as const;
const MEANINGS = {
  release: "Every condition was verified true: the evidence supports paying the seller.",
  refund: "At least one condition was verified false: the evidence supports refunding the buyer.",
  escalate:
    "The conditions could not be verified with certainty. That is a verdict, not a failure: the escrow that requested it decides what happens next.",
} as const;

/** Renders a verdict's page. */
export function renderVerdict(stored: StoredVerdict, places: readonly LogPlace[], baseUrl: string): string {
  const record = JSON.parse(stored.document) as VerdictDocument;
  const path = verdictPath(stored.id);
  return renderPage({
    title: `Verdict: ${HEADINGS[stored.outcome].toLowerCase()}`,
    description: MEANINGS[stored.outcome],
    canonical: `${baseUrl}${path}`,
    jsonUrl: `${baseUrl}${path}?format=json`,
    main: html`<article class="deed ${stored.supersededBy === null ? VERDICT_TONES[stored.outcome] : "gray"}"><p class="eyebrow">Arbiter verdict</p>
<h1>${HEADINGS[stored.outcome]}</h1>
<p class="state">${MEANINGS[stored.outcome]}</p>
${correction(stored, record)}
${facts(summary(record), "ruled")}</article>
${conditionsSection(record)}
${observationsSection(record)}
${logSection(places)}
<section aria-labelledby="check"><h2 id="check">Check it</h2>
<p class="measure"><a href="${path}?format=json">The signed record</a> never changes. Its signature can be checked without this service:</p>
${codeBlock({
  id: "verify",
  caption: "Check the signature",
  language: "bash",
  text: `curl -s '${baseUrl}${path}?format=json' > verdict.json\n${npxCommand(baseUrl, VERIFIER)} verdict.json --issuer ${baseUrl}`,
})}
<p class="measure soft">It states what was observed at that time, under <a href="${policyPath(record.policy_version)}">version ${record.policy_version} of the policy</a>. It is not a warranty.</p></section>`,
  });
}

function correction({ supersededBy }: StoredVerdict, { supersedes }: VerdictDocument): Markup {
  return html`${
    supersededBy !== null &&
    html`<p class="state"><strong>Superseded</strong> by <a class="mono" href="${verdictPath(supersededBy)}">${supersededBy}</a>, because the arbiter made an error. This record stays as it was.</p>`
  }${
    supersedes &&
    html`<p class="state">Supersedes <a class="mono" href="${verdictPath(supersedes.id)}">${supersedes.id}</a>. What the arbiter got wrong: ${supersedes.reason}</p>`
  }`;
}

function summary(record: VerdictDocument): Parameters<typeof facts>[0] {
  const { parties, claimant } = record;
  const party = (name: "payer" | "payee"): Markup => {
    const one = parties?.[name];
    return html`<code>${one?.wallet}</code>${isUnsigned(record, one?.wallet) && html` <span class="soft small">named by the claimant; has not signed</span>`}${one && "tier" in one && html` risk tier ${one.tier} (${one.score} of 100), not used to decide`}`;
  };
  return [
    [
      "Category",
      html`<a href="${policyPath(record.policy_version)}#${record.category}"><code>${record.category}</code></a>`,
    ],
    ...(claimant === undefined ? [] : [["Claimed by", claimedBy(record)] as const]),
    ["Deal", html`<span class="mono">${record.deal_ref ?? "none given"}</span>`],
    ...(parties
      ? ([
          ["Buyer", party("payer")],
          ["Seller", party("payee")],
        ] as const)
      : []),
    ["Conditions, SHA-256", html`<code>${record.conditions_sha256}</code>`],
    ["Issued", instant(new Date(record.issued_at))],
  ];
}

/** Returns whether only the claimant names this wallet as a party. */
const isUnsigned = ({ claimant, parties_named_by: source }: VerdictDocument, wallet: string | undefined): boolean =>
  source === "claimant" && wallet !== claimant;

function claimedBy({ claimant, parties }: VerdictDocument): Markup {
  const isParty = parties === undefined || [parties.payer.wallet, parties.payee.wallet].some((one) => one === claimant);
  return html`<code>${claimant}</code>${!isParty && html` <span class="soft small">not a party to this deal</span>`}`;
}

const isCondition = (fact: Fact): fact is Extract<Fact, { fact: "condition" }> => fact.fact === "condition";

const shown = (value: unknown): string => (value === null ? "nothing" : String(value));

const conditionsSection = ({
  facts: all,
}: VerdictDocument): Markup => html`<section aria-labelledby="conditions"><h2 id="conditions">Conditions</h2>
<ul class="rows">${all.filter(isCondition).map(
  ({ condition, expected, observed, result, reason }) =>
    html`<li><h3>${conditionName(condition)}</h3><span>${resultMark(result)} <span class="soft small">${reason.replaceAll("_", " ")}</span></span>${facts(
      [
        ["Expected", html`<span class="mono">${shown(expected)}</span>`],
        ["Observed", html`<span class="mono">${shown(observed)}</span>`],
      ],
    )}</li>`,
)}</ul></section>`;

function observationsSection({ facts: all, timeline }: VerdictDocument): Markup {
  const seen = all.filter((fact) => !isCondition(fact));
  return html`<section aria-labelledby="seen"><h2 id="seen">What was observed</h2>
${timeline.map(
  ({ source, started_at }) =>
    html`<p class="soft small">Checked with <code>${source}</code> on ${instant(new Date(started_at))}.</p>`,
)}
${codeBlock({ id: "facts", caption: "The facts, as signed", language: "json", text: seen.map((fact) => JSON.stringify(fact, null, 2)).join("\n") })}</section>`;
}

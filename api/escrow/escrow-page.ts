import { html, instant, type Markup } from "../kernel/html.ts";
import { formatUsd } from "../kernel/money.ts";
import { explorerTransactionUrl, type Network } from "../kernel/networks.ts";
import { codeBlock, facts, mark, renderPage } from "../kernel/page.ts";
import type { escrowOverview } from "./overview.ts";
import type { Answered } from "./ports.ts";
import { evaluationPath, type evaluationRecord } from "./record.ts";

type Overview = ReturnType<typeof escrowOverview>;

/** The escrow for people. */
export const renderEscrow = (overview: Overview, baseUrl: string): string =>
  renderPage({
    title: "Escrow",
    description: overview.what,
    canonical: `${baseUrl}/escrow`,
    jsonUrl: `${baseUrl}/escrow?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Escrow</p>
<h1>Paid when delivered</h1>
<p class="lead">${overview.what} Nobody else can be paid, by nobody’s word: there is no owner, no upgrade and no pause.</p></div>
${contractsSection(overview)}
${rulesSection(overview)}
<section aria-labelledby="time"><h2 id="time">Fee and time</h2>
<p class="measure">${overview.fee_policy.text}</p><p class="measure">${overview.verdict_policy.timeout}</p></section>
<section aria-labelledby="merchant"><h2 id="merchant">A merchant in a few lines</h2>
${codeBlock({ id: "snippet", caption: "merchant.ts", text: overview.integration.snippet })}
<p class="measure">Programs read <a href="/escrow?format=json">all of this as JSON</a>, with the typed data that a merchant signs.</p></section>`,
  });

const contractsSection = ({
  contracts,
}: Overview): Markup => html`<section aria-labelledby="contracts"><h2 id="contracts">Contracts</h2>
${
  contracts.length === 0
    ? html`<p>No contract is configured here.</p>`
    : contracts.map((contract) =>
        facts(
          [
            ["Address", html`<a class="mono" href="${contract.explorer_url}" rel="noopener">${contract.address}</a>`],
            ["Network", html`<code>${contract.network_key}</code> (${contract.network})`],
            ["Validity", contract.validity],
            ["Arbiter", html`<code>${contract.arbiter}</code>`],
            ["Fee recipient", html`<code>${contract.fee_recipient}</code>`],
          ],
          "ruled",
        ),
      )
}</section>`;

const rulesSection = ({
  verdict_policy,
}: Overview): Markup => html`<section aria-labelledby="rules"><h2 id="rules">What decides</h2>
<p class="measure">The first rule that applies, in this order. ${verdict_policy.first_is_final} ${verdict_policy.scope}</p>
<table><thead><tr><th scope="col">When</th><th scope="col">Then</th></tr></thead><tbody>${verdict_policy.rules.map(
  ({ decision, when }) =>
    html`<tr><th scope="row">${when}</th><td>${mark(decision === "release" ? "pass" : "fail", decision === "release" ? "Release" : "Refund")}</td></tr>`,
)}</tbody></table></section>`;

type Record = ReturnType<typeof evaluationRecord>;

/** One evaluation for people. */
export function renderEvaluation({ evaluation, status, transaction }: Answered, baseUrl: string): string {
  const record = JSON.parse(evaluation.document) as Record;
  const path = evaluationPath(evaluation.payment);
  const released = record.decision === "release";
  const link = (hash: string) =>
    html`<a class="mono" href="${explorerTransactionUrl(record.network as Network, hash as `0x${string}`)}" rel="noopener">${hash}</a>`;
  return renderPage({
    title: released ? "Released" : "Refunded",
    description: record.rule_text,
    canonical: `${baseUrl}${path}`,
    jsonUrl: `${baseUrl}${path}?format=json`,
    main: html`<article class="deed ${released ? "pass" : "fail"}"><p class="eyebrow">Escrow evaluation</p>
<h1>${released ? "Release to the merchant" : "Refund to the buyer"}</h1>
<p class="state">${record.rule_text}</p>
${facts(
  [
    ["Payment", html`<code>${record.payment_id}</code>`],
    ["Amount", html`<strong>${record.amount_usd} USDC</strong>, of which ${formatUsd(BigInt(record.fee))} fee`],
    ["Buyer", html`<code>${record.payer}</code>`],
    ["Merchant", html`<code>${record.merchant}</code>`],
    ["Held in", link(record.hold_transaction)],
    ["On the chain", transaction === null ? `${status}` : html`${status}: ${link(transaction)}`],
  ],
  "ruled",
)}</article>
<section aria-labelledby="seen"><h2 id="seen">What was delivered</h2>
${facts(
  [
    ["Status", `${record.delivery.status}`],
    ["Content type", record.delivery.content_type ?? "not stated"],
    ["Length", `${record.delivery.body_bytes} bytes`],
    ["SHA-256", html`<code>${record.delivery.body_sha256}</code>`],
    ["Rule", html`<code>${record.rule}</code>, version ${record.evaluation_version}`],
    ["Evaluated", instant(new Date(record.evaluated_at))],
  ],
  "ruled",
)}
<p class="measure">The contract’s event carries the SHA-256 of this record: <code>${evaluation.record}</code>. <a href="${path}?format=json">The signed record</a> is what it is taken from.</p></section>`,
  });
}

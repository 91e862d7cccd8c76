import { type LogPlace, logSection } from "../log/index.ts";
import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, type Network } from "../platform/networks.ts";
import { html, instant, type Markup } from "../platform/page/html.ts";
import { codeBlock, facts, mark, renderPage } from "../platform/page/page.ts";
import { contestPath } from "./contest/contest-record.ts";
import type { escrowOverview } from "./overview.ts";
import { TIMEOUT_TEXT } from "./payment.ts";
import type { Answered } from "./record.ts";
import { evaluationPath, type evaluationRecord } from "./record.ts";

type Overview = ReturnType<typeof escrowOverview>;

/** Renders the escrow's page. */
export const renderEscrow = (overview: Overview, baseUrl: string): string =>
  renderPage({
    title: "Escrow",
    description: overview.what,
    canonical: `${baseUrl}/escrow`,
    current: "/escrow",
    jsonUrl: `${baseUrl}/escrow?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Escrow</p>
<h1>Paid when delivered</h1>
<p class="lead">${overview.what} The money cannot go anywhere else, because the contract has no owner, no upgrade, and no pause.</p></div>
${contractsSection(overview)}
${rulesSection(overview)}
${contestSection(overview)}
<section aria-labelledby="time"><h2 id="time">Fee and timeout</h2>
<p class="measure">${overview.fee_policy.text}</p><p class="measure">${overview.verdict_policy.timeout}</p></section>
<section aria-labelledby="try"><h2 id="try">Try it</h2>
<p class="measure">An agent buys <a href="${new URL(overview.demo.url).pathname}">an espresso for ${overview.demo.price} USDC</a>: held, served, evaluated and released. ${overview.neutrality}</p></section>
<section aria-labelledby="merchant"><h2 id="merchant">A merchant in a few lines</h2>
${codeBlock({ id: "snippet", caption: "merchant.ts", text: overview.integration.snippet })}
<p class="measure">Also available <a href="/escrow?format=json">as JSON</a>, with the typed data a merchant signs.</p></section>`,
  });

function contractsSection({ contracts }: Overview): Markup {
  const current = contracts.filter(({ validity }) => validity === "current");
  const earlier = contracts.filter(({ validity }) => validity !== "current");
  return html`<section aria-labelledby="contract"><h2 id="contract">${current.length > 1 ? "Contracts" : "Contract"}</h2>
${current.length === 0 ? html`<p>No contract is configured here.</p>` : current.map(contractFacts)}</section>
${
  earlier.length > 0 &&
  html`<section aria-labelledby="earlier"><h2 id="earlier">Earlier contracts</h2>
<ul class="rows">${earlier.map((contract) => html`<li>${contractLink(contract)}<span class="note soft">Settles what it holds, accepts nothing new.</span></li>`)}</ul></section>`
}`;
}

const contractFacts = (
  contract: Overview["contracts"][number],
): Markup => html`<h3>Paid by <code>${contract.scheme}</code></h3>
${facts(
  [
    ["Address", contractLink(contract)],
    ["Network", html`<code>${contract.network_key}</code> (${contract.network})`],
    ["Arbiter", html`<code>${contract.arbiter}</code>, which ${arbiterMay}`],
    ["Fee recipient", html`<code>${contract.fee_recipient}</code>`],
    ["Money held by", contract.held_by],
    ["Can it get stuck?", contract.can_get_stuck],
    ["The payer’s own way", contract.payer_can_reclaim],
    ["Gas", gasOf(contract)],
  ],
  "ruled",
)}`;

const gasOf = ({ gas }: Overview["contracts"][number]): string =>
  Object.entries(gas)
    .map(([what, amount]) => `${what} ${amount.toLocaleString("en")}`)
    .join(", ");

const arbiterMay = "can release or refund, and nothing else";

const contractLink = ({ address, explorer_url }: Overview["contracts"][number]): Markup =>
  html`<a class="mono" href="${explorer_url}" rel="noopener">${address}</a>`;

/** Renders words between backticks as code. */
const withCode = (text: string): readonly (Markup | string)[] =>
  text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));

const ruleRow = ({ decision, when }: { readonly decision: "release" | "refund"; readonly when: string }): Markup =>
  html`<tr><th scope="row">${withCode(when)}</th><td>${mark(decision === "release" ? "pass" : "fail", decision === "release" ? "Release" : "Refund")}</td></tr>`;

const rulesSection = ({
  verdict_policy,
}: Overview): Markup => html`<section aria-labelledby="rules"><h2 id="rules">How a delivery is judged</h2>
<p class="measure">The rules are checked in this order, and the first one that applies decides. ${verdict_policy.first_is_final} ${verdict_policy.scope}</p>
<table><thead><tr><th scope="col">When</th><th scope="col">Then</th></tr></thead><tbody>${verdict_policy.rules.map(
  ruleRow,
)}</tbody></table></section>`;

const contestSection = ({
  contest,
}: Overview): Markup => html`<section aria-labelledby="contest"><h2 id="contest">When a buyer contests</h2>
<p class="measure">${contest.window.text} ${contest.once}</p>
<table class="terms prose"><thead><tr><th scope="col">Ground</th><th scope="col">What is checked</th></tr></thead><tbody>${contest.grounds.map(
  ({ category, about, needs, table }) =>
    html`<tr><th scope="row"><code>${category}</code></th><td>${about} ${needs} <span class="soft">Table: ${table}</span></td></tr>`,
)}</tbody></table>
<table><thead><tr><th scope="col">When</th><th scope="col">Then</th></tr></thead><tbody>${contest.rules.map(ruleRow)}</tbody></table></section>`;

type EvaluationRecord = ReturnType<typeof evaluationRecord>;

/** Renders one evaluation's page. */
export function renderEvaluation(answered: Answered, places: readonly LogPlace[], baseUrl: string): string {
  const { evaluation, contest, status } = answered;
  const record = JSON.parse(evaluation.document) as EvaluationRecord;
  const path = evaluationPath(evaluation.payment);
  const [tone, heading] = [TONES[status], HEADINGS[(contest ?? record).decision][status]];
  return renderPage({
    title: heading,
    description: record.rule_text,
    canonical: `${baseUrl}${path}`,
    jsonUrl: `${baseUrl}${path}?format=json`,
    main: html`<article class="deed ${tone}"><p class="eyebrow">Escrow evaluation</p>
<h1>${heading}</h1>
<p class="state">${withCode(record.rule_text)}${contest !== null && html` <a href="${contestPath(evaluation.payment)}">The buyer contested it</a>, and the answer is ${contest.decision}.`}${contest === null && overtaken(record, status) && ` The evaluation decided release, but a refund to the buyer, which anyone may trigger after ${TIMEOUT_TEXT}, came first.`}${record.service_is !== undefined && ` This service itself is the ${record.service_is} of this payment; the rule is applied as to any other.`}</p>
${facts(moneyFacts(record, answered), "ruled")}</article>
<section aria-labelledby="seen"><h2 id="seen">What was delivered</h2>
<p class="measure">As the merchant forwarded and signed it. We do not keep the content, only its length and hash.</p>
${facts(
  [
    ["Status", `${record.delivery.status}`],
    ["Content type", record.delivery.content_type ?? "not stated"],
    ["Length", `${record.delivery.body_bytes} ${record.delivery.body_bytes === 1 ? "byte" : "bytes"}`],
    ["SHA-256", html`<code>${record.delivery.body_sha256}</code>`],
    ["Rule", html`<code>${record.rule}</code> of <a href="/escrow#rules">version ${record.evaluation_version}</a>`],
    ["Evaluated", instant(new Date(record.evaluated_at))],
    ...windowFacts(record),
  ],
  "ruled",
)}</section>
${logSection(places)}
<section aria-labelledby="check"><h2 id="check">Check it</h2>
<p class="measure"><a href="${path}?format=json">The signed record</a> never changes. The transaction we send for it puts the SHA-256 of its canonical form (RFC 8785) in the contract’s event:</p>
${codeBlock({ id: "record", caption: "Hash of the record", text: evaluation.record })}</section>`,
  });
}

/** Returns the window in which the buyer could contest it. */
const windowFacts = ({ contest, payment_id }: EvaluationRecord): Parameters<typeof facts>[0] =>
  contest === undefined
    ? []
    : [
        [
          "Contest window",
          html`${contest.seconds} seconds, until ${instant(new Date(contest.until))}: <a href="${contestPath(payment_id)}">the buyer’s contest</a>`,
        ],
      ];

type Status = Answered["status"];
const TONES = { pending: "gray", released: "pass", refunded: "fail" } as const;

/** Returns whether someone else refunded it before the release was mined. */
const overtaken = ({ decision }: EvaluationRecord, status: Status): boolean =>
  decision === "release" && status === "refunded";

const HEADINGS: { readonly [D in EvaluationRecord["decision"]]: { readonly [S in Status]: string } } = {
  release: {
    pending: "To be released to the merchant",
    released: "Released to the merchant",
    refunded: "Refunded to the buyer",
  },
  refund: {
    pending: "To be refunded to the buyer",
    released: "Released to the merchant",
    refunded: "Refunded to the buyer",
  },
};

function moneyFacts(record: EvaluationRecord, { status, transaction }: Answered): Parameters<typeof facts>[0] {
  const link = (hash: string) =>
    html`<a class="mono" href="${explorerTransactionUrl(record.network as Network, hash as `0x${string}`)}" rel="noopener">${hash}</a>`;
  const amount = html`<strong>${record.amount_usd} USDC</strong>`;
  const fee = BigInt(record.fee);
  const paid = formatUsd(BigInt(record.amount) - fee);
  return [
    [
      "Amount",
      fee === 0n || overtaken(record, status)
        ? html`${amount}, no fee`
        : html`${amount}: ${paid} for the merchant, ${formatUsd(fee)} fee`,
    ],
    ["Outcome", transaction === null ? "decided, not mined yet" : link(transaction)],
    ["Held in", link(record.hold_transaction)],
    ["Buyer", html`<code>${record.payer}</code>`],
    ["Merchant", html`<code>${record.merchant}</code>`],
    ["Payment", html`<code>${record.payment_id}</code>`],
  ];
}

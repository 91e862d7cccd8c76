import { type LogPlace, logSection } from "../../log/index.ts";
import { explorerTransactionUrl, type Network } from "../../platform/networks.ts";
import { html, instant, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, renderPage } from "../../platform/page/page.ts";
import type { contestView } from "./contest-view.ts";

type View = ReturnType<typeof contestView>;

const HEADINGS = { release: "Contested, and released", refund: "Contested, and refunded" } as const;
const TONES = { release: "pass", refund: "fail" } as const;

/**
 * Renders a payment's contest window, the buyer's contest, and the answer.
 * @param places the log entries of the evaluation and the answer
 */
export function renderContest(view: View, places: readonly LogPlace[], baseUrl: string): string {
  const { contest, answer } = view;
  const path = new URL(view.contest_url).pathname;
  const heading = answer !== null ? HEADINGS[answer.decision] : contest !== null ? "Contested" : "Not contested";
  return renderPage({
    title: heading,
    description: answer?.rule_text ?? "A contest by the buyer of an escrowed payment, before its release.",
    canonical: `${baseUrl}${path}`,
    jsonUrl: `${baseUrl}${path}?format=json`,
    main: html`<article class="deed ${answer === null ? "gray" : TONES[answer.decision]}"><p class="eyebrow">Escrow contest</p>
<h1>${heading}</h1>
<p class="state">${answer?.rule_text ?? (contest === null ? "The buyer has not contested." : "The claim is being checked.")}</p>
${facts(moneyFacts(view), "ruled")}</article>
${contest !== null && claimSection(contest)}
${answer !== null && answerSection(answer, path)}
${logSection(places)}`,
  });
}

const moneyFacts = (view: View): Parameters<typeof facts>[0] => [
  ["Window", html`${view.window.seconds} seconds, until ${instant(new Date(view.window.until))}`],
  ["Evaluation", html`<a href="${new URL(view.evaluation_url).pathname}">what was delivered</a>`],
  ["Outcome", outcomeOf(view)],
  ["Buyer", html`<code>${view.payer}</code>`],
  ["Merchant", html`<code>${view.merchant}</code>`],
  ["Payment", html`<code>${view.payment_id}</code>`],
];

const outcomeOf = ({ network, transaction, status }: View): Markup | string =>
  transaction === null
    ? "not mined yet"
    : html`${status}: <a class="mono" href="${explorerTransactionUrl(network as Network, transaction)}" rel="noopener">${transaction}</a>`;

const claimSection = ({ claim, claim_sha256, made_at }: NonNullable<View["contest"]>): Markup =>
  html`<section aria-labelledby="claim"><h2 id="claim">The buyer’s claim</h2>
${facts(
  [
    ["Ground", html`<code>${claim.category}</code> of <a href="/escrow#contest">the published grounds</a>`],
    ["Made", instant(new Date(made_at))],
    ["SHA-256 of the claim", html`<code>${claim_sha256}</code>`],
  ],
  "ruled",
)}</section>`;

const answerSection = (answer: NonNullable<View["answer"]>, path: string): Markup =>
  html`<section aria-labelledby="seen"><h2 id="seen">What was checked</h2>
<p class="measure">The rule is <code>${answer.rule}</code>. The answer is signed and never changes; it is part of <a href="${path}?format=json">the record</a>.</p>
${codeBlock({ id: "facts", caption: "Facts", text: JSON.stringify(answer.facts, null, 2) })}</section>`;

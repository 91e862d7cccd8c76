import { CHECK_WEIGHTS, LEVEL_MEANINGS } from "../../../packages/seller-check/src/exam/level.ts";
import { remedyOf } from "../../../packages/seller-check/src/exam/remedies.ts";
import { CHECK_TITLES, type CheckResult } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { badgeUrl, certImageUrl, certJsonUrl, certUrl, emblem, evidenceUrl } from "../../certificates/index.ts";
import { logSection } from "../../log/index.ts";
import { formatUsd } from "../../platform/money.ts";
import { explorerAddressUrl, explorerTransactionUrl, NETWORKS } from "../../platform/networks.ts";
import { counted, foreignLine, foreignLines, html, instant, longDay, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, mark, renderPage } from "../../platform/page/page.ts";
import type { Hex } from "../../platform/wallet.ts";
import { bareUrl } from "../consent.ts";
import { type Exam, siteName, siteOf, VALID_DAYS } from "../record.ts";
import { type ExamAppearance, examAppearance, examHeadline, sellerLinkedData, uncertified } from "./appearance.ts";
import { type Placed, SELLER_BADGE, type SellerRecordParts, sellerBadgeMarkdown } from "./document.ts";
import { compareSettlements, type MatchedSettlements } from "./evidence.ts";
import { verdictOf } from "./judge-exams.ts";
import type { KeptBody, KeptExchange } from "./schemas.ts";
import { sellerVerifyUrl } from "./verification.ts";

/** The length to which a page repeats a stranger's text, in characters. All of it is in the evidence. */
const MOST = { url: 300, header: 200, headers: 40, body: 1_500, failure: 300 } as const;

const exchangeId = (number: number): string => `exchange-${number}`;

/** Renders every request with its answer, shortened. Anything a seller sends is rendered only as text. */
const exchangesSection = (exchanges: readonly KeptExchange[], evidencePath: string): Markup =>
  exchanges.length === 0
    ? html``
    : html`<section aria-labelledby="exchanges"><h2 id="exchanges">Requests and answers</h2>
<p class="measure">In the order in which they were sent, shortened. All of it is in <a href="${evidencePath}">the evidence (JSON)</a>. A character that cannot be seen is written like <code>\\u{202e}</code>.</p>
${exchanges.map(exchange)}</section>`;

const exchange = (one: KeptExchange): Markup => {
  const { number, request, answer } = one;
  const id = exchangeId(number);
  return html`<details><summary>${number}. ${foreignLine(request.method, 20)} ${pathOf(request.url)}: ${answer === null ? "no answer" : answer.status}</summary>
<div id="${id}">${codeBlock({ id: `${id}-request`, caption: `Request ${number}`, text: requestText(one) })}
${codeBlock({ id: `${id}-answer`, caption: `Answer ${number}`, text: answerText(one) })}</div></details>`;
};

const pathOf = (url: string): string => foreignLine(URL.canParse(url) ? new URL(url).pathname : url, 80);

const requestText = ({ request }: KeptExchange): string =>
  [
    `${foreignLine(request.method, 20)} ${foreignLine(request.url, MOST.url)}${request.family === undefined ? "" : ` over IPv${request.family}`}`,
    ...headerLines(request.headers),
    ...digest("query", request.querySha256),
    ...digest("body", request.bodySha256),
  ].join("\n");

const digest = (name: string, sha256: string | null): readonly string[] =>
  sha256 === null ? [] : [`(${name} left out; its SHA-256 is ${sha256})`];

const answerText = ({ answer, failure }: KeptExchange): string =>
  answer === null
    ? `No answer: ${foreignLine(failure ?? "", MOST.failure)}`
    : [`${answer.status}`, ...headerLines(answer.headers), ...bodyLines(answer.body)].join("\n");

function headerLines(headers: Readonly<Record<string, string>>): readonly string[] {
  const entries = Object.entries(headers);
  const more = entries.length - MOST.headers;
  return [
    ...entries
      .slice(0, MOST.headers)
      .map(([name, value]) => `${foreignLine(name, 80)}: ${foreignLine(value, MOST.header)}`),
    ...(more > 0 ? [`… and ${counted(more, "more header")}`] : []),
  ];
}

function bodyLines({ bytes, text, base64, isWhole }: KeptBody): readonly string[] {
  if (bytes === 0) return [];
  const shown = text === null ? foreignLine(base64 ?? "", MOST.body) : foreignLines(text, MOST.body);
  const kind = text === null ? "in base64" : "";
  const rest = isWhole && (text ?? base64 ?? "").length <= MOST.body ? [] : [`(${counted(bytes, "byte")} in all)`];
  return ["", ...(kind === "" ? [] : [`(${kind})`]), shown, ...rest];
}

const MARKS = {
  pass: ["pass", "Pass"],
  fail: ["fail", "Fail"],
  not_applicable: ["gray", "Does not apply"],
} as const;

/**
 * Renders each check with its weight, its findings, their remedies, and links to the exchanges that show them.
 * Statements may quote the seller.
 */
const checksSection = (checks: readonly CheckResult[], shown: ReadonlySet<number>): Markup =>
  checks.length === 0
    ? html``
    : html`<section aria-labelledby="checks"><h2 id="checks">Checks</h2>
<ul class="rows">${checks.map((check) => row(check, shown))}</ul></section>`;

const row = ({ check, outcome, reason, findings }: CheckResult, shown: ReadonlySet<number>): Markup => {
  const [tone, word] = MARKS[outcome];
  return html`<li><h3>${CHECK_TITLES[check]}</h3>${mark(tone, word)}
<div class="note small"><p class="soft">Weight: ${CHECK_WEIGHTS[check]}</p>${reason !== null && html`<p>${foreignLine(reason, 500)}</p>`}
${findings.length > 0 && html`<ul>${findings.map((finding) => html`<li>${line(finding, shown)}</li>`)}</ul>`}</div></li>`;
};

function line(finding: CheckResult["findings"][number], shown: ReadonlySet<number>): Markup {
  const { statement, holds, exchanges } = finding;
  const remedy = remedyOf(finding);
  return html`${!holds && html`<strong>Not so:</strong> `}${foreignLine(statement, 500)} ${exchanges.length > 0 && html`<span class="soft">(${linksTo(exchanges, shown)})</span>`}${remedy !== null && html`<br><strong>Remedy:</strong> ${remedy.text} <a href="${remedy.link}" rel="noopener">Read the rule</a>`}`;
}

const linksTo = (numbers: readonly number[], shown: ReadonlySet<number>): readonly Markup[] =>
  numbers.map(
    (number, place) =>
      html`${place > 0 && ", "}${shown.has(number) ? html`<a href="#${exchangeId(number)}" aria-label="Exchange ${number}">${number}</a>` : number}`,
  );

/** Renders what a seller's certificate states, what it does not, and how it is corrected. */
const meaningSection = (): Markup => html`<section aria-labelledby="meaning"><h2 id="meaning">What this proves</h2>
<div class="two"><div><h3>It states</h3><ul>
<li>What the examiner sent to this origin, and what it answered, at the time of the exam.</li>
<li>That a file at the origin named the wallet that bought the exam, and these paths.</li>
<li>Each check is a published rule. The requests and answers show every finding.</li>
</ul></div><div><h3>It does not state</h3><ul>
<li>That what is sold is worth its price, true or lawful. The content was not judged.</li>
<li>That other routes of the origin behave alike, or that this one will tomorrow.</li>
<li>That a seller cannot tell the examiner from a buyer.</li>
<li>Anything after the exam. No seller is silently examined again, and the certificate expires after ${VALID_DAYS} days.</li>
</ul></div></div>
<h3>Corrections</h3>
<p class="measure">No record is ever edited or deleted. If the examiner was wrong, a correction with its reason is added, and the record no longer counts. That is the only ground for a correction: a seller that has fixed a fault takes a new exam. Request one through <a href="/.well-known/security.txt">the security contact</a>.</p></section>`;

interface Context extends SellerRecordParts {
  readonly exchanges: readonly KeptExchange[];
  readonly now: Date;
}

/** Renders the page of an exam: a certificate if it is published, otherwise a plain record that certifies nothing. */
export function renderSellerPage(exam: Exam, context: Context): string {
  const { placed, exchanges, places, baseUrl } = context;
  const shown = placed === null ? uncertified(exam) : examAppearance(placed);
  const { order } = exam;
  const headline = placed === null ? uncertifiedHeadline(exam) : examHeadline(placed.exam, shown);
  const name = siteName(siteOf(order));
  const title = `${headline}: ${name}`;
  const description = `${shown.sentence} Seller ${name}. A fact observed, not a safety guarantee.`;
  return renderPage({
    title,
    description,
    ...(placed !== null && {
      canonical: certUrl(baseUrl, order),
      image: { url: certImageUrl(baseUrl, order), alt: `${title}, ${shown.short}` },
      head: sellerLinkedData(placed, description, baseUrl),
    }),
    jsonUrl: certJsonUrl(baseUrl, order),
    main: html`${deed(exam, { shown, headline, placed })}
${placed !== null && historySection(placed, baseUrl)}
${checksSection(exam.result?.checks ?? [], new Set(exchanges.map(({ number }) => number)))}
${paymentsSection(exam, context)}
${exchangesSection(exchanges, evidenceUrl(baseUrl, order))}
${placed !== null && html`${logSection(places)}${meaningSection()}${badgeSection(placed, { shown, baseUrl })}`}
${moreSection(exam, context)}`,
  });
}

function uncertifiedHeadline({ result }: Exam): string {
  if (result === null) return "Exam under way";
  return result.outcome === "interrupted" ? "Exam interrupted" : "Not certified";
}

interface Deed {
  readonly shown: ExamAppearance;
  readonly headline: string;
  readonly placed: Placed | null;
}

function deed({ order, result, correction }: Exam, { shown, headline, placed }: Deed): Markup {
  const level = result?.level ?? null;
  return html`<article class="deed ${shown.tone}">
<div class="deed-head">${placed !== null && html`<svg class="seal" viewBox="0 0 200 200" role="img" aria-label="Seal: ${shown.word}, ${shown.state.toLowerCase()}">${emblem(order.id, shown)}</svg>`}
<div><p class="eyebrow">Exam of a seller</p>
<h1>${headline}</h1>
<p class="state"><strong>${shown.state}.</strong> ${shown.sentence}</p>
${result?.note != null && html`<p class="state">${foreignLine(result.note, 500)}</p>`}
${correction !== null && html`<p class="state">The examiner’s error: ${foreignLine(correction.reason, 500)}${freeExam(correction.free)}</p>`}
${order.againOf !== null && html`<p class="state">It repeats <a href="/cert/${order.againOf}">an exam that was corrected</a>, free of charge.</p>`}</div></div>
${facts(
  [
    ["Origin", html`<code>${order.origin}</code>`],
    [
      "Payee",
      html`<a class="mono" href="${explorerAddressUrl(order.payment.network, order.payTo)}" rel="noopener nofollow">${order.payTo}</a>`,
    ],
    ...(order.consent.prefix === "/" ? [] : [["Paths under", html`<code>${order.consent.prefix}</code>`] as const]),
    ["Request", html`<code>${foreignLine(`${order.method} ${bareUrl(order.url).url}`, 300)}</code>`],
    ...(order.other === null
      ? []
      : [["Other route named", html`<code>${foreignLine(bareUrl(order.other).url, 300)}</code>`] as const]),
    ["Price", html`<strong>${formatUsd(order.amount)} USDC</strong> on ${NETWORKS[order.payment.network].name}`],
    ...(level === null || placed === null
      ? []
      : [["Level", html`<strong>${level}</strong>: ${LEVEL_MEANINGS[level]}`] as const]),
    ["Control shown by", html`<a href="${order.consent.url}" rel="noopener nofollow">a file at the origin</a>`],
    ["Bought by", html`<code>${order.payment.payer}</code>`],
    ...(result === null ? [] : [["Examined", instant(result.endedAt)] as const]),
    ...(result?.validUntil == null ? [] : [["Valid until", instant(result.validUntil)] as const]),
    [placed === null ? "Exam" : "Certificate", html`<code>${order.id}</code>`],
  ],
  "ruled",
)}
</article>`;
}

const freeExam = (free: NonNullable<Exam["correction"]>["free"]): Markup | false =>
  free !== null &&
  (free.exam === null
    ? html` The seller may take another exam free of charge.`
    : html` <a href="/cert/${free.exam}">It was repeated free of charge.</a>`);

/** Shows whether a seller bought exams until one passed. */
const historySection = ({ supersededBy, earlier }: Placed, baseUrl: string): Markup | false =>
  (supersededBy !== null || earlier.length > 0) &&
  html`<section aria-labelledby="others"><h2 id="others">Other exams of the same request</h2>
${supersededBy !== null && html`<p class="measure">A newer one counts: <a href="${certUrl(baseUrl, supersededBy.order)}">${verdictOf(supersededBy).toUpperCase()} of ${longDay(supersededBy.result.endedAt)}</a>.</p>`}
${
  earlier.length > 0 &&
  html`<ul class="rows">${earlier
    .slice(0, 20)
    .map(
      (one) =>
        html`<li><a href="${certUrl(baseUrl, one.order)}">${longDay(one.result.endedAt)}</a>${mark(verdictOf(one), verdictOf(one).toUpperCase())}</li>`,
    )}</ul>${earlier.length > 20 && html`<p>And ${earlier.length - 20} more.</p>`}`
}</section>`;

const linkTo = (network: Exam["order"]["payment"]["network"], transaction: Hex): Markup =>
  html`<a class="mono" href="${explorerTransactionUrl(network, transaction)}" rel="noopener nofollow">${transaction}</a>`;

function paymentsSection({ order, result }: Exam, { transactions }: Context): Markup {
  const { network } = order.payment;
  const { seen, claimed } = compareSettlements(transactions, result?.settlements ?? []);
  return html`<section aria-labelledby="payments"><h2 id="payments">Payments</h2>
${facts(
  [
    ...(result === null ? [] : [["Spent at the seller", spent(result.spent)] as const]),
    ["This exam was bought in", linkTo(network, order.settlement.transaction)],
  ],
  "ruled",
)}
${
  seen.length > 0 &&
  html`<h3>What the chain showed</h3>${facts(
    seen.map((one) => settledFact(network, one)),
    "ruled",
  )}`
}
${
  claimed.length > 0 &&
  html`<h3>What the seller’s answers claim</h3>${facts(
    claimed.map((one) => claimFact(network, one)),
    "ruled",
  )}`
}</section>`;
}

type OnNetwork = Exam["order"]["payment"]["network"];

const settledFact = (network: OnNetwork, one: MatchedSettlements["seen"][number]): readonly [string, Markup] => [
  `${formatUsd(one.value)} USDC in block ${one.block}`,
  html`${linkTo(network, one.transaction)} to <a class="mono" href="${explorerAddressUrl(network, one.to)}" rel="noopener nofollow">${one.to}</a>, ${one.claimedIn.length === 0 ? "which no answer names" : html`named in ${answers(one.claimedIn)}`}`,
];

const claimFact = (network: OnNetwork, one: MatchedSettlements["claimed"][number]): readonly [string, Markup] => [
  `Named in ${answers(one.exchanges)}`,
  html`${linkTo(network, one.transaction)}, ${one.isOnChain ? "which the chain showed" : html`<strong>in which the chain showed no payment of this exam</strong>`}`,
];

const answers = (numbers: readonly number[]): string =>
  `${numbers.length === 1 ? "answer" : "answers"} ${numbers.join(", ")}`;

const spent = (atomic: bigint | null): string => (atomic === null ? "Not known" : `${formatUsd(atomic)} USDC`);

const badgeSection = (
  { exam: { order } }: Placed,
  { shown, baseUrl }: { readonly shown: ExamAppearance; readonly baseUrl: string },
): Markup => html`<section aria-labelledby="badge"><h2 id="badge">README badge</h2>
<p class="badge"><img src="/badge/${order.id}.svg" height="20" alt="${SELLER_BADGE}: ${shown.short}"> <a href="${badgeUrl(baseUrl, order)}">Badge as SVG</a></p>
${codeBlock({ id: "badge-markdown", caption: "Markdown", text: sellerBadgeMarkdown(baseUrl, order) })}</section>`;

const moreSection = (
  { order, result, removal }: Exam,
  { placed, baseUrl }: Context,
): Markup => html`<section aria-labelledby="more"><h2 id="more">Check it yourself</h2>
<ul class="links"><li><a href="${certJsonUrl(baseUrl, order)}">This record as JSON</a></li>
${result !== null && removal === null && html`<li><a href="${evidenceUrl(baseUrl, order)}">The evidence (JSON)</a></li>`}
${placed !== null && html`<li><a href="${sellerVerifyUrl(baseUrl, siteOf(order))}">This origin’s full record</a></li>`}
<li><a href="${baseUrl}/inspect">All tests</a></li></ul>
${removal !== null && html`<p class="measure">The evidence was removed on ${longDay(removal.at)}: ${removal.reason} Its digest, the result, and its log entry stay.</p>`}
${result !== null && html`<p class="measure soft small">SHA-256 of the evidence: <span class="mono">${result.evidenceSha256}</span></p>`}</section>`;

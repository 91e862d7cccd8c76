import { LEVEL_MEANINGS } from "../../../packages/seller-check/src/exam/level.ts";
import { badgeUrl, certImageUrl, certJsonUrl, certUrl, evidenceUrl } from "../../certificates/links.ts";
import { emblem } from "../../certificates/pages/emblem.ts";
import { formatUsd } from "../../platform/money.ts";
import { explorerAddressUrl, explorerTransactionUrl, NETWORKS } from "../../platform/networks.ts";
import type { Hex } from "../../platform/wallet.ts";
import { foreignLine } from "../../platform/page/foreign-text.ts";
import { html, instant, longDay, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, mark, renderPage } from "../../platform/page/page.ts";
import { logSection } from "../../log/log-section.ts";
import { type Exam, type KeptExchange, siteName, siteOf } from "../record.ts";
import { bareUrl } from "../request-document.ts";
import { type ExamAppearance, examAppearance, uncertified } from "./appearance.ts";
import { checksSection } from "./checks-section.ts";
import { type Placed, SELLER_BADGE, type SellerRecordParts, sellerBadgeMarkdown } from "./document.ts";
import { compareSettlements, type SettlementsTold } from "./evidence.ts";
import { exchangesSection } from "./exchanges-section.ts";
import { meaningSection } from "./meaning-section.ts";
import { examHeadline, sellerLinkedData } from "./preview.ts";
import { verdictOf } from "./standing.ts";
import { sellerVerifyUrl } from "./verification.ts";

interface Context extends SellerRecordParts {
  readonly exchanges: readonly KeptExchange[];
  readonly now: Date;
}

/** The page of an exam: a certificate if it is published, and a plain record that certifies nothing if it is not. */
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

/** A seller who bought exams until one passed is seen to have done so. */
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

const settledFact = (network: OnNetwork, one: SettlementsTold["seen"][number]): readonly [string, Markup] => [
  `${formatUsd(one.value)} USDC in block ${one.block}`,
  html`${linkTo(network, one.transaction)} to <a class="mono" href="${explorerAddressUrl(network, one.to)}" rel="noopener nofollow">${one.to}</a>, ${one.claimedIn.length === 0 ? "which no answer names" : html`named in ${answers(one.claimedIn)}`}`,
];

const claimFact = (network: OnNetwork, one: SettlementsTold["claimed"][number]): readonly [string, Markup] => [
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
  { order, result }: Exam,
  { placed, baseUrl }: Context,
): Markup => html`<section aria-labelledby="more"><h2 id="more">Check it yourself</h2>
<ul class="links"><li><a href="${certJsonUrl(baseUrl, order)}">This record as JSON</a></li>
${result !== null && html`<li><a href="${evidenceUrl(baseUrl, order)}">The evidence</a></li>`}
${placed !== null && html`<li><a href="${sellerVerifyUrl(baseUrl, siteOf(order))}">This origin’s full record</a></li>`}
<li><a href="${baseUrl}/inspect">All tests</a></li></ul>
${result !== null && html`<p class="measure soft small">SHA-256 of the evidence: <span class="mono">${result.evidenceSha256}</span></p>`}</section>`;

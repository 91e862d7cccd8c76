import { badgeUrl, certUrl } from "../certificates/links.ts";
import { counted, day, html, instant, type Markup } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";
import { SELLER_BADGE } from "../sellers/published/document.ts";
import { SELLER_VERIFIED_MEANS, sellerVerifyUrl } from "../sellers/published/verification.ts";
import { siteName } from "../sellers/record.ts";
import { type BoardPage, SELLER, type SellerRow } from "./board.ts";
import { type BoardContext, filter, paging } from "./board-page.ts";

/** The board of sellers; `sellerBoardDocument` gives the same as JSON. */
export const renderSellerBoard = (board: BoardPage<SellerRow>, context: BoardContext): string =>
  renderPage({
    title: "Certified sellers",
    description: `Currently certified sellers, newest first. ${SELLER_VERIFIED_MEANS}`,
    ...(context.first ? { canonical: `${context.baseUrl}/board?capability=${SELLER}` } : {}),
    jsonUrl: context.jsonUrl,
    current: "/board",
    main: html`<div class="hero"><p class="eyebrow">Board</p>
<h1>Certified sellers</h1>
<p class="lead">${SELLER_VERIFIED_MEANS}</p>
<p class="measure">Newest first. Also available <a href="${context.jsonUrl}">as JSON</a>. For totals, see the <a href="/stats">statistics</a>.</p>
${filter(SELLER)}</div>
<section aria-labelledby="sellers"><h2 id="sellers">Sellers</h2>
${board.rows.length === 0 ? nobody(context) : html`<ol class="rows">${board.rows.map((row) => seller(row, context.baseUrl))}</ol>`}
${paging(SELLER, context)}</section>`,
  });

const nobody = ({ first }: BoardContext): Markup =>
  first
    ? html`<p>No seller is currently certified. A seller can <a href="/inspect">take the exam</a>.</p>`
    : html`<p>No more sellers.</p>`;

const seller = (row: SellerRow, baseUrl: string): Markup => {
  const alt = `${SELLER_BADGE}: ${row.level}, valid until ${day(row.validUntil)}`;
  return html`<li><a class="mono" href="${sellerVerifyUrl(baseUrl, row)}">${siteName(row)}</a>
<a class="badge" href="${certUrl(baseUrl, row)}"><img src="${new URL(badgeUrl(baseUrl, row)).pathname}" height="20" loading="lazy" alt="${alt}"></a>
<span class="note">Level ${row.level}; ${counted(row.requests, "request passes", "requests pass")}. Paid to <span class="mono">${row.payTo}</span></span>
<span class="note soft small">Examined ${instant(row.issuedAt)}; valid until ${instant(row.validUntil)}</span></li>`;
};

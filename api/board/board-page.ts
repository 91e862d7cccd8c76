import {
  badgeUrl,
  CAPABILITY_MENU,
  type Capability,
  certUrl,
  PRODUCTS,
  productOf,
  titleOf,
  VERIFIED_MEANS,
  verifyUrl,
} from "../certificates/index.ts";
import { counted, day, html, instant, type Markup } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";
import { SELLER_BADGE, SELLER_VERIFIED_MEANS, sellerVerifyUrl, siteName } from "../sellers/index.ts";
import { type BoardPage, type BoardRow, SELLER, type SellerRow } from "./board.ts";

interface BoardContext {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  readonly first: boolean;
  /** Null on the last page. */
  readonly nextUrl: string | null;
  readonly jsonUrl: string;
}

type Asked = Capability | typeof SELLER | null;

const pathOf = (capability: Asked): string => (capability === null ? "/board" : `/board?capability=${capability}`);

/** Renders the board of agents. `boardDocument` returns the same as JSON. */
export const renderBoard = (board: BoardPage, context: BoardContext): string =>
  renderList(context, {
    title: "Certified agents",
    means: VERIFIED_MEANS,
    asked: board.capability,
    id: "agents",
    heading: board.capability === null ? "Any test" : nameOf(board.capability),
    rows: board.rows.map((row) => agent(row, context.baseUrl)),
    empty: context.first
      ? html`${board.capability === null ? "No agent is currently certified." : "No certified agent currently passes this test."} An agent can <a href="/inspect">take a test</a>.`
      : html`No more agents.`,
  });

/** Renders the board of sellers. `sellerBoardDocument` returns the same as JSON. */
export const renderSellerBoard = (board: BoardPage<SellerRow>, context: BoardContext): string =>
  renderList(context, {
    title: "Certified sellers",
    means: SELLER_VERIFIED_MEANS,
    asked: SELLER,
    id: "sellers",
    heading: "Sellers",
    rows: board.rows.map((row) => seller(row, context.baseUrl)),
    empty: context.first
      ? html`No seller is currently certified. A seller can <a href="/inspect">take the exam</a>.`
      : html`No more sellers.`,
  });

interface List {
  readonly title: string;
  readonly means: string;
  readonly asked: Asked;
  readonly id: string;
  readonly heading: string;
  readonly rows: readonly Markup[];
  /** Shown in place of the rows if there are none. */
  readonly empty: Markup;
}

const renderList = (
  { baseUrl, first, nextUrl, jsonUrl }: BoardContext,
  { title, means, asked, id, heading, rows, empty }: List,
): string =>
  renderPage({
    title,
    description: `Currently ${title.toLowerCase()}, newest first. ${means}`,
    ...(first ? { canonical: `${baseUrl}${pathOf(asked)}` } : {}),
    jsonUrl,
    current: "/board",
    main: html`<div class="hero"><p class="eyebrow">Board</p>
<h1>${title}</h1>
<p class="lead">${means}</p>
<p class="measure">Newest first. Also available <a href="${jsonUrl}">as JSON</a>. For totals, see the <a href="/stats">statistics</a>.</p>
${filter(asked)}</div>
<section aria-labelledby="${id}"><h2 id="${id}">${heading}</h2>
${rows.length === 0 ? html`<p>${empty}</p>` : html`<ol class="rows">${rows}</ol>`}
${(!first || nextUrl !== null) && html`<p class="actions">${!first && html`<a class="button quiet" href="${pathOf(asked)}">Newest</a>`} ${nextUrl !== null && html`<a class="button" rel="next" href="${nextUrl}">Older</a>`}</p>`}</section>`,
  });

const nameOf = (capability: Capability): string => PRODUCTS[productOf(capability)].title;

const filter = (current: Asked): Markup =>
  html`<nav aria-label="Filter by test"><ul class="links">${[null, ...CAPABILITY_MENU, SELLER].map(
    (capability) =>
      html`<li><a href="${pathOf(capability)}"${capability === current && html` aria-current="page"`}>${wordFor(capability)}</a></li>`,
  )}</ul></nav>`;

const wordFor = (capability: Asked): string =>
  capability === null ? "Any test" : capability === SELLER ? "Sellers" : nameOf(capability);

const agent = (row: BoardRow, baseUrl: string): Markup => {
  const alt = `${PRODUCTS[row.product].badge}: ${row.level.toLowerCase()}, valid until ${day(row.validUntil)}`;
  return html`<li><a class="mono" href="${verifyUrl(baseUrl, row.wallet)}">${row.wallet}</a>
<a class="badge" href="${certUrl(baseUrl, row)}"><img src="${new URL(badgeUrl(baseUrl, row)).pathname}" height="20" loading="lazy" alt="${alt}"></a>
<span class="note">Passes: ${row.products.map(titleOf).join(", ")}</span>
<span class="note soft small">Certified ${instant(row.issuedAt)}; valid until ${instant(row.validUntil)}</span></li>`;
};

const seller = (row: SellerRow, baseUrl: string): Markup => {
  const alt = `${SELLER_BADGE}: ${row.level}, valid until ${day(row.validUntil)}`;
  return html`<li><a class="mono" href="${sellerVerifyUrl(baseUrl, row)}">${siteName(row)}</a>
<a class="badge" href="${certUrl(baseUrl, row)}"><img src="${new URL(badgeUrl(baseUrl, row)).pathname}" height="20" loading="lazy" alt="${alt}"></a>
<span class="note">Level ${row.level}; ${counted(row.requests, "request passes", "requests pass")}. Paid to <span class="mono">${row.payTo}</span></span>
<span class="note soft small">Examined ${instant(row.issuedAt)}; valid until ${instant(row.validUntil)}</span></li>`;
};

import type { PaidRoute } from "../platform/http/route.ts";
import type { FieldError } from "../platform/http/schema.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock, renderPage } from "../platform/page/page.ts";

export interface ProblemText {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly request_id: string;
  readonly code?: string;
  readonly errors?: readonly FieldError[];
}

/**
 * Renders a problem as a page for browsers.
 * @param sold the paid route at this URL, or null
 */
export const renderProblem = (
  { status, title, detail, request_id, code, errors = [] }: ProblemText,
  sold: PaidRoute | null = null,
  baseUrl = "",
): string =>
  renderPage({
    title: `${status} ${title}`,
    description: detail,
    main: html`<div class="hero"><p class="eyebrow">${status === 402 ? "Paid route" : "Error"} ${status}</p>
<h1>${title}</h1>
<p class="lead">${detail}</p>
${errors.length > 0 && html`<ul>${errors.map(({ path, message }) => html`<li>${path !== "" && html`<code>${path}</code>: `}${message}</li>`)}</ul>`}
<p class="soft small">${code !== undefined && html`<a href="/docs/errors#${code}">What this means, and what to do</a> · `}Request <code>${request_id}</code></p>
<p class="actions"><a class="button" href="${sold === null ? "/" : "/docs/pay"}">${sold === null ? "Home" : "How to pay"}</a> <a class="button quiet" href="/docs">Documentation</a></p></div>
${sold !== null && offer(sold, baseUrl)}`,
  });

const offer = (
  { method, path, summary, description, terms: { price, networks } }: PaidRoute,
  baseUrl: string,
): Markup =>
  html`<section aria-labelledby="sold"><h2 id="sold">${summary}</h2>
<p class="measure">${description}</p>
<p class="measure">This URL sells to programs: <code>${method} ${path}</code> costs <strong>${formatUsd(price)} ${NETWORKS[networks[0]].money}</strong>, paid over x402.</p>
${codeBlock({ id: "terms", caption: "See the terms without paying", language: "bash", text: `curl -i -X ${method} ${baseUrl}${path}` })}</section>`;

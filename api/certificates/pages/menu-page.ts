import { NETWORKS } from "../../platform/networks.ts";
import { html, type Markup } from "../../platform/page/html.ts";
import { renderPage } from "../../platform/page/page.ts";
import type { Menu } from "../routes.ts";

export const renderMenu = ({ menu, other_products }: Menu, baseUrl: string): string =>
  renderPage({
    title: "Tests",
    description: "Every test of an agent: what it checks, what it costs, and how to run it.",
    canonical: `${baseUrl}/inspect`,
    jsonUrl: `${baseUrl}/inspect?format=json`,
    current: "/inspect",
    main: html`<div class="hero"><p class="eyebrow">Tests</p>
<h1>What we test</h1>
<p class="lead">Each test leads to a public certificate. <a href="/docs/pay">Start with one payment</a>; <a href="/docs/tests">complete programs that pass the others</a>. Also available <a href="/inspect?format=json">as JSON</a>.</p></div>
${menu.map(
  (test) => html`<section aria-labelledby="${test.id}"><h2 id="${test.id}">${test.summary}</h2>
<p><code>${test.method} ${test.path}</code> · <strong>${cost(test)}</strong></p>
<ol class="measure">${test.steps.map((step) => html`<li>${step}</li>`)}</ol>
<p class="measure soft">${test.how_to_run}</p></section>`,
)}
<section aria-labelledby="others"><h2 id="others">Also for sale</h2>
<ul class="rows">${other_products.map(
      (one) => html`<li><h3>${one.summary}</h3><span class="price">${one.price} ${NETWORKS[one.network].money}</span>
<code class="note soft">${one.method} ${one.path}</code></li>`,
    )}</ul></section>`,
  });

const cost = ({ price, total_cost, network }: Menu["menu"][number]): Markup =>
  html`${total_cost} ${NETWORKS[network].money}${total_cost !== price && html`, of which ${price} to start`}`;

import { NETWORKS } from "../platform/networks.ts";
import { html } from "../platform/page/html.ts";
import { codeBlock, renderPage } from "../platform/page/page.ts";
import { CAFE_NETWORK, type cafeOverview, orderPath } from "./menu.ts";

export const renderCafe = (overview: ReturnType<typeof cafeOverview>, baseUrl: string): string =>
  renderPage({
    title: "Café",
    description: overview.what,
    canonical: `${baseUrl}/cafe`,
    jsonUrl: `${baseUrl}/cafe?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Café, on the test network</p>
<h1>An espresso for your agent</h1>
<p class="lead">${overview.what}</p></div>
<section aria-labelledby="menu"><h2 id="menu">Menu</h2>
<ul class="rows">${overview.menu.map(
      ({ item, price, extra }) =>
        html`<li><h3>${item.replaceAll("-", " ")}, with ${extra}</h3><span class="price">${price} ${NETWORKS[CAFE_NETWORK].money}</span><code class="note soft">POST ${orderPath(item)}</code></li>`,
    )}</ul>
${codeBlock({ id: "order", caption: "See the terms", language: "bash", text: `curl -i -X POST ${baseUrl}${orderPath("espresso")}` })}</section>
<section aria-labelledby="rounds"><h2 id="rounds">Open rounds</h2>
${
  overview.open_rounds.length === 0
    ? html`<p class="soft">None right now. Receipts served to date: ${overview.receipts_served}.</p>`
    : html`<ul class="rows">${overview.open_rounds.map(
        ({ nickname, left }) => html`<li><h3>${nickname}</h3><span class="note soft">buys the next ${left}</span></li>`,
      )}</ul>`
}</section>`,
  });

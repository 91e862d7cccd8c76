import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock, renderPage } from "../platform/page/page.ts";
import { type Docs, GROUPS } from "./groups.ts";
import { packagesChapter } from "./packages-chapter.ts";
import { errorsChapter } from "./problems.ts";
import { install } from "./samples.ts";
import { scoreChapter } from "./score-chapter.ts";

/** The documentation: a chapter for each group of users, the score, the errors. */
export const renderDocs = (docs: Docs): string =>
  renderPage({
    title: "Documentation",
    description:
      "How to certify, check, score, escrow and arbitrate agent payments: examples to copy, the score and the errors.",
    canonical: `${docs.baseUrl}/docs`,
    current: "/docs",
    main: html`<div class="hero"><p class="eyebrow">Documentation</p>
<h1>What do you want to do?</h1>
<p class="lead">Every example on this page runs as is. Save the files in one folder under the names shown, and set <code>PAYER_PRIVATE_KEY</code> to the key of a wallet with USDC on Base.</p>
${codeBlock(install(docs.baseUrl))}
${contents()}</div>
${GROUPS.map(
  ({ id, name, question, chapter }) =>
    html`<section class="chapter" aria-labelledby="${id}"><h2 id="${id}"><span class="eyebrow">${name}</span> ${question}</h2>
${chapter(docs)}</section>`,
)}
${scoreChapter(docs.baseUrl)}
${packagesChapter(docs)}
${errorsChapter()}`,
  });

const contents = (): Markup => html`<nav class="contents" aria-label="On this page"><ul>${GROUPS.map(
  ({ id, name, question }) => html`<li><a href="#${id}"><strong>${question}</strong><span>${name}</span></a></li>`,
)}<li><a href="#score"><strong>Understand a score</strong><span>Components, tiers, caps</span></a></li>
<li><a href="#packages"><strong>Install the packages</strong><span>Verifier, escrow, MCP tools, exam for sellers</span></a></li>
<li><a href="#errors"><strong>Handle errors</strong><span>Every code and its remedy</span></a></li></ul></nav>`;

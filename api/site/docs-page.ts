import { html, type Markup } from "../layout/html.ts";
import { codeBlock, renderPage } from "../layout/page.ts";
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
      "How to prove, check, score, escrow and arbitrate agent payments: code to copy, the score, the errors.",
    canonical: `${docs.baseUrl}/docs`,
    current: "/docs",
    main: html`<div class="hero"><p class="eyebrow">Documentation</p>
<h1>What do you want to do?</h1>
<p class="lead">All code on this page runs as it stands. Save it under its name in one folder, and let <code>PAYER_PRIVATE_KEY</code> hold the key of a wallet with USDC on Base.</p>
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
)}<li><a href="#score"><strong>Read a score</strong><span>Components, tiers, caps</span></a></li>
<li><a href="#packages"><strong>Install the packages</strong><span>Verifier, escrow, MCP tools</span></a></li>
<li><a href="#errors"><strong>Handle errors</strong><span>The catalogue</span></a></li></ul></nav>`;

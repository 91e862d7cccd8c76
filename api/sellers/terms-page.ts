import type { z } from "zod";
import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock, facts, mark, renderPage } from "../platform/page/page.ts";
import type { EXAM_TERMS } from "./schemas.ts";

type Terms = z.infer<typeof EXAM_TERMS>;
type Looked = NonNullable<Terms["seller"]>;

/** Renders the checks and the price of a seller's exam, and what currently prevents one, as a page. */
export const renderExamTerms = (terms: Terms, baseUrl: string): string =>
  renderPage({
    title: "The seller’s exam",
    description: "A buyer that pays with real USDC tries what must not work, and publishes what it saw.",
    canonical: `${baseUrl}/test/seller`,
    jsonUrl: `${baseUrl}/test/seller?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Sellers</p>
<h1>The seller’s exam</h1>
<p class="lead">A buyer that pays with real USDC on Base tries what must not work and publishes what it saw. <a href="/docs/seller">How to order one, and how to run it on your machine first</a>. Also available <a href="/test/seller?format=json">as JSON</a>.</p>
${!terms.for_sale && html`<p class="state fail">This installation does not sell exams.</p>`}</div>
${terms.seller !== undefined && lookedSection(terms.seller)}
<section aria-labelledby="look"><h2 id="look">Look at a seller</h2>
<p class="measure">Free. Shows the quote, the line that lets your wallet order the exam, and what would be refused.</p>
<form action="/test/seller#found" method="get"><div class="field"><label for="url">Paid URL</label>
<input id="url" name="url" type="url" required value="${terms.seller?.url ?? ""}" placeholder="https://…" autocomplete="off" autocapitalize="off" spellcheck="false"></div>
<button class="button" type="submit">Look</button></form></section>
<section aria-labelledby="costs"><h2 id="costs">What it costs</h2>
${facts(
  [
    ["Exam", html`<strong>${terms.price} USDC</strong>`],
    ["The seller may ask for", `at most ${terms.ceiling} USDC per payment`],
    ["Payments", `${terms.payments}, all at the quoted price`],
    ["Result", `public within ${terms.result_within_seconds} seconds`],
    ["Between two exams of an origin", `${terms.cooldown_minutes} minutes`],
  ],
  "ruled",
)}</section>
<section aria-labelledby="rehearsal"><h2 id="rehearsal">Rehearse first</h2>
<p class="measure">The result of an exam is public whatever it is. <code>POST ${new URL(terms.rehearsal.hosted.url).pathname}</code> runs the same exam of a public endpoint in test USDC on Base Sepolia and records nothing. Or run it on your machine:</p>
${codeBlock({ id: "rehearse", caption: "In test USDC on Base Sepolia", language: "bash", text: terms.rehearsal.command })}</section>
<section aria-labelledby="checks"><h2 id="checks">What it checks</h2>
<table class="prose stack"><thead><tr><th scope="col">Check</th><th scope="col">Level</th><th scope="col">Passes if</th></tr></thead><tbody>${terms.checks.map(
      ({ check, weight, passes_if }) =>
        html`<tr><th scope="row"><code>${check}</code></th><td>${weight}</td><td>${passes_if}</td></tr>`,
    )}</tbody></table></section>
<section aria-labelledby="refusals"><h2 id="refusals">What is refused</h2>
<p class="measure">Before anything is charged:</p>
${facts(
  Object.entries(terms.refusals).map(([code, why]) => [code, why] as const),
  "ruled",
)}</section>`,
  });

const lookedSection = ({
  url,
  refused,
  not_now,
  price,
  pay_to,
  consent,
}: Looked): Markup => html`<section aria-labelledby="found"><h2 id="found">This seller</h2>
<p class="mono">${url}</p>
<p>${refused === null && not_now === null ? mark("pass", "An exam can be ordered") : mark("fail", "Not now")}</p>
${refused !== null && html`<p class="measure"><code>${refused.code}</code>: ${refused.detail}</p>`}
${not_now !== null && html`<p class="measure">${not_now}</p>`}
${
  price !== undefined &&
  facts(
    [
      ["Quote", `${price} USDC`],
      ["Paid to", html`<code>${pay_to}</code>`],
    ],
    "ruled",
  )
}
${consent !== undefined && codeBlock({ id: "line", caption: `A line for ${consent.file.url}`, text: consent.file.line })}</section>`;

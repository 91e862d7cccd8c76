import { html } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";
import type { Section } from "./terms.ts";

/** The terms of use as a page. */
export const renderTerms = (sections: readonly Section[], baseUrl: string): string =>
  renderPage({
    title: "Terms of use",
    description: "What the service sells, what its responses mean and what it is liable for.",
    canonical: `${baseUrl}/terms`,
    main: html`<div class="hero"><h1>Terms of use</h1></div>
${sections.map(
  ({ title, paragraphs }) => html`<section><h2>${title}</h2>
${paragraphs.map((text) => html`<p class="measure">${text}</p>`)}</section>`,
)}`,
  });

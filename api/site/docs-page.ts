import { PROBLEMS } from "../platform/http/errors.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock, renderPage } from "../platform/page/page.ts";
import type { Tarballs } from "./packages/tarballs.ts";
import type { Program } from "./samples.ts";

export interface Docs {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  /** A wallet to show, in lower case. */
  readonly wallet: string;
  /** Our packages, as built. */
  readonly tarballs: Tarballs;
}

/** The audiences, in the order of the contents. The keys are anchors of `/docs`. */
export const READERS = {
  agents: "Agent builders",
  merchants: "x402 merchants",
  marketplaces: "Marketplaces",
  "escrow-systems": "Escrow systems",
  everyone: "Everyone",
} as const;

/** One page of the documentation: one task. */
export interface DocsPage {
  readonly path: `/${string}`;
  readonly reader: keyof typeof READERS;
  /** The reader's task, in a few words. */
  readonly title: string;
  /** One sentence. */
  readonly lead: string;
  readonly body: (docs: Docs) => Markup;
  /** Anchors of `/docs` that link to this page. */
  readonly anchors?: readonly string[];
}

const LANGUAGES = ["TypeScript", "Python"] as const;

/** Renders one tab per language. The tabs work without a script, and print shows both. */
export const inLanguages = (id: string, ...parts: readonly [typescript: Markup, python: Markup]): Markup =>
  html`<fieldset class="tabs"><legend class="hide">Language</legend>${LANGUAGES.map(
    (language, index) =>
      html`<input type="radio" name="${id}-language" id="${id}-${language}" value="${language}"${index === 0 && html` checked`}><label for="${id}-${language}">${language}</label>`,
  )}${parts.map((part) => html`<div class="tab">${part}</div>`)}</fieldset>`;

/** Renders a program's file and the commands that run it from an empty folder. */
export const shown = (id: string, { file, text, run }: Program): Markup =>
  html`${codeBlock({ id, caption: file, text })}
${codeBlock({ id: `${id}-run`, caption: `Run ${file}`, language: "bash", text: run })}`;

export const inBoth = (id: string, node: Program, python: Program): Markup =>
  inLanguages(id, shown(id, node), shown(`${id}-py`, python));

/** Filters the contents as the reader types, and shows all samples in the language that the reader chose last. */
export const DOCS_SCRIPT = `const search = document.getElementById("search");
if (search) {
  const field = search.querySelector("input"), count = search.querySelector("[role=status]");
  const entries = [...document.querySelectorAll("[data-words]")];
  const find = () => {
    const words = field.value.toLowerCase().split(/[^a-z0-9_-]+/).filter(Boolean);
    for (const entry of entries) entry.hidden = !words.every((word) => entry.dataset.words.includes(word));
    const found = entries.filter((entry) => !entry.hidden).length;
    count.textContent = words.length === 0 ? "" : found === 1 ? "1 section" : found + " sections";
  };
  search.hidden = false;
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", find);
  search.addEventListener("submit", (event) => event.preventDefault());
  find();
}
const show = (language) => {
  for (const one of document.querySelectorAll(".tabs > input")) one.checked = one.value === language;
};
const kept = () => { try { return localStorage.getItem("language"); } catch { return null; } };
if (kept() && document.querySelector('.tabs > input[value="' + CSS.escape(kept()) + '"]')) show(kept());
addEventListener("change", ({ target }) => {
  if (!target.matches(".tabs > input")) return;
  const { top } = target.parentElement.getBoundingClientRect();
  show(target.value);
  scrollBy({ top: target.parentElement.getBoundingClientRect().top - top, behavior: "instant" });
  try { localStorage.setItem("language", target.value); } catch {}
});`;

/** Renders a page, with the contents in a sidebar. */
export function renderDocsPage(page: DocsPage, pages: readonly DocsPage[], docs: Docs): string {
  const body = page.body(docs);
  const index = pages.indexOf(page);
  const sections = sectionsOf(body);
  return renderPage({
    title: page.title,
    description: page.lead,
    canonical: `${docs.baseUrl}${page.path}`,
    current: page.path.startsWith("/docs") ? "/docs" : "/integrations",
    script: DOCS_SCRIPT,
    main: html`<div class="docs"><nav class="side" aria-label="Documentation"><ul><li><a href="/docs#find">Search</a></li></ul>${byReader(
      pages,
    ).map(
      ([reader, own]) =>
        html`<p class="eyebrow">${reader}</p><ul>${own.map((one) => html`<li><a href="${one.path}"${one === page && html` aria-current="page"`}>${one.title}</a></li>`)}</ul>`,
    )}</nav>
<article><div class="hero"><p class="eyebrow"><a href="/docs">Documentation</a> · ${READERS[page.reader]}</p>
<h1>${page.title}</h1>
<p class="lead">${page.lead}</p>
${sections.length > 2 && html`<p class="small">On this page: ${sections.map(({ id, title }, place) => html`${place > 0 && " · "}<a href="#${id}">${title}</a>`)}</p>`}</div>
${body}
<nav class="steps" aria-label="Next and previous page">${step(pages[index - 1], "Previous")}${step(pages[index + 1], "Next")}</nav></article></div>`,
  });
}

const step = (page: DocsPage | undefined, word: string): Markup | false =>
  page !== undefined && html`<a href="${page.path}"><span>${word}</span> ${page.title}</a>`;

const byReader = (pages: readonly DocsPage[]): readonly (readonly [string, readonly DocsPage[]])[] =>
  Object.entries(READERS).map(([id, name]) => [name, pages.filter(({ reader }) => reader === id)]);

interface Section {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** The sections of a page, split at their headings. */
const sectionsOf = (body: Markup): readonly Section[] =>
  [...String(body).matchAll(/<h2 id="([^"]+)">(.*?)<\/h2>(.*?)(?=<h2 id|$)/gs)].map(
    ([, id = "", title = "", text = ""]) => ({
      id,
      title: wordsOf(title),
      text,
    }),
  );

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', "#39": "'", amp: "&" };
const wordsOf = (markup: string): string =>
  markup
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name) => ENTITIES[name] ?? " ")
    .replaceAll(/\s+/g, " ")
    .trim();

/** The distinct words of a text, for the search. */
const indexOf = (text: string): string =>
  [
    ...new Set(
      wordsOf(text)
        .toLowerCase()
        .split(/[^a-z0-9_-]+/)
        .filter((word) => word.length > 2),
    ),
  ].join(" ");

/** Renders the contents: the pages by audience, the search, and an anchor for every error code. */
export const renderDocs = (pages: readonly DocsPage[], docs: Docs): string =>
  renderPage({
    title: "Documentation",
    description: "How to pay, certify, check, sell, score, escrow and arbitrate agent payments: one page per task.",
    canonical: `${docs.baseUrl}/docs`,
    current: "/docs",
    script: DOCS_SCRIPT,
    main: html`<div class="hero"><p class="eyebrow">Documentation</p>
<h1>What do you want to do?</h1>
<p class="lead">One page per task. Every sample is a complete program in TypeScript or Python, with the commands that run it from an empty folder. You don’t need an account, only a wallet with USDC on Base. <a href="#find">Search</a>.</p></div>
${Object.entries(READERS).map(
  ([id, name]) => html`<section aria-labelledby="${id}"><h2 id="${id}">${name}</h2>
<nav class="contents" aria-label="${name}"><ul>${pages
    .filter(({ reader }) => reader === id)
    .map(
      ({ path, title, lead, anchors = [] }) =>
        html`<li>${anchors.map((anchor) => html`<span id="${anchor}"></span>`)}<a href="${path}"><strong>${title}</strong><span>${lead}</span></a></li>`,
    )}</ul></nav></section>`,
)}
<section aria-labelledby="find"><h2 id="find">Find a section</h2>
<form id="search" role="search" hidden><div class="field"><input name="q" type="search" aria-label="Search the documentation" placeholder="Search" autocomplete="off" spellcheck="false"></div><span role="status"></span></form>
<ul class="index">${pages.flatMap((page) => {
      const { path, title, lead, body } = page;
      const entry = (text: string, href: string, name: string) =>
        html`<li data-words="${indexOf(`${title} ${text}`)}"><a href="${href}">${name}</a> <span class="soft small">${title}</span></li>`;
      return sectionsOf(body(docs)).map(({ id, title: name, text }) =>
        entry(`${lead} ${name} ${text}`, `${path}#${id}`, name),
      );
    })}</ul></section>
<section aria-labelledby="codes"><h2 id="codes">Error codes</h2>
<ul class="rows">${Object.entries(PROBLEMS).map(
      ([code, { status, title }]) =>
        html`<li id="${code}"><span><a href="/docs/errors#${code}">${title}</a> <code class="soft">${code}</code></span> <span class="price">${status}</span></li>`,
    )}</ul></section>`,
  });

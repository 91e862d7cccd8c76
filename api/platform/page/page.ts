import { createHash } from "node:crypto";
import type { Context } from "hono";
import { raw } from "hono/html";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { prefers } from "../http/accept.ts";
import { REHEARSED_ON } from "../networks.ts";
import { highlight, type Language, languageOf } from "./highlight.ts";
import { html, type Markup } from "./html.ts";
import { rosette } from "./rosette.ts";
import { STYLE } from "./style.ts";

export const SITE_NAME = "Agent Payment Trust Service";

/** The site's icon, served at `/favicon.svg` and inlined in every page. */
export const FAVICON_SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b5a4c"/>' +
  '<circle cx="16" cy="16" r="10.5" fill="none" stroke="#e3c788" stroke-width="1.5"/>' +
  '<path d="m11 16.5 3.6 3.6L21.2 12.6" fill="none" stroke="#fffdf8" stroke-width="2.8" stroke-linecap="round" stroke-linejoin="round"/></svg>';

const COPY_SCRIPT = `for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy), said = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    button.nextElementSibling.textContent = button.textContent;
    setTimeout(() => { button.textContent = said; button.nextElementSibling.textContent = ""; }, 2500);
  });
}`;

const sourceHash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Allows our own style and the named scripts by hash, and no external resources. */
const policyOf = (scripts: readonly string[]): readonly string[] => [
  "default-src 'none'",
  `script-src ${scripts.map(sourceHash).join(" ")}`,
  `style-src ${sourceHash(STYLE)}`,
  "img-src 'self' data:",
  // Crawlers request robots.txt on the page's behalf.
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
];

/** The `Content-Security-Policy` of every HTML page without its own script. */
export const CONTENT_SECURITY_POLICY = policyOf([COPY_SCRIPT]).join("; ");

/**
 * A shorter policy for a page whose headers contain terms to pay, because a stock proxy reads all headers into 4 KB. No
 * script runs.
 */
export const POLICY_BESIDE_TERMS =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/** Returns the policy of a page with its own script, which may call only this service. */
export const policyWithScript = (script: string): string => policyOf([COPY_SCRIPT, script]).join("; ");

const NAVIGATION = [
  { path: "/docs", name: "Docs" },
  { path: "/integrations", name: "Integrations" },
  { path: "/pay", name: "Try it" },
  { path: "/#verify", name: "Verify" },
  { path: "/board", name: "Board" },
  { path: "/escrow", name: "Escrow" },
  { path: "/arbiter", name: "Arbiter" },
] as const;

const FOOT_LINKS = [
  { path: "/inspect", name: "Tests" },
  { path: "/docs/errors", name: "Errors" },
  { path: "/docs/scores", name: "Risk score" },
  { path: "/arbiter/policy", name: "Arbiter policy" },
  { path: "/stats", name: "Statistics" },
  { path: "/status", name: "Status" },
  { path: "/log", name: "Transparency log" },
  { path: "/.well-known/jwks.json", name: "Public keys (JSON)" },
  { path: "/openapi.json", name: "OpenAPI (JSON)" },
  { path: "/llms.txt", name: "llms.txt" },
  { path: "/terms", name: "Terms" },
  { path: "/privacy", name: "Privacy" },
] as const;

export interface Page {
  readonly title: string;
  readonly description: string;
  /** The absolute URL of the page; without one, the page asks not to be indexed. */
  readonly canonical?: string;
  /** Absolute URL of a 1200 by 630 picture for link previews, and its text alternative. */
  readonly image?: { readonly url: string; readonly alt: string };
  /** The absolute URL of the same record as JSON. */
  readonly jsonUrl?: string;
  /** More elements for the head, such as a JSON-LD block. */
  readonly head?: Markup;
  readonly current?: "/" | (typeof NAVIGATION | typeof FOOT_LINKS)[number]["path"];
  /** The page's own script, allowed by `policyWithScript`. */
  readonly script?: string;
  readonly main: Markup;
}

/** Shown on every page of an installation that is a rehearsal. */
const TEST_NOTICE =
  REHEARSED_ON &&
  html`<p class="note"><strong>${REHEARSED_ON.name}.</strong> This whole installation is a rehearsal: everything is paid in test USDC, and its certificates, scores, and verdicts count nowhere else.</p>`;

/** Renders a page's whole HTML document. */
export const renderPage = (page: Page): string =>
  html`<!doctype html>
<html lang="en">
${head(page)}
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="top"><div class="wrap">
<a class="brand" href="/"${page.current === "/" && html` aria-current="page"`}><svg viewBox="0 0 200 200" aria-hidden="true">${rosette("trust")}</svg>${SITE_NAME}</a>
<nav aria-label="Site"><ul>${linksOf(NAVIGATION, page)}</ul></nav>
</div></header>
<main id="main"><div class="wrap">
${TEST_NOTICE}
${page.main}
</div></main>
<footer class="foot"><div class="wrap">
<p>These are facts observed on-chain or by our own checks, not a judgment of character or a guarantee of safety.</p>
<ul class="links">${linksOf(FOOT_LINKS, page)}</ul>
</div></footer>
${page.main.includes("data-copy=") && html`<script>${raw(COPY_SCRIPT)}</script>`}
${page.script !== undefined && html`<script>${raw(page.script)}</script>`}
</body>
</html>
`.toString();

const linksOf = (links: typeof NAVIGATION | typeof FOOT_LINKS, { current }: Page): readonly Markup[] =>
  links.map(
    ({ path, name }) => html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${name}</a></li>`,
  );

const head = (page: Page): Markup => html`<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title} · ${SITE_NAME}</title>
<meta name="description" content="${page.description}">
<meta name="color-scheme" content="light dark">
<link rel="icon" type="image/svg+xml" href="data:image/svg+xml,${encodeURIComponent(FAVICON_SVG)}">
<link rel="apple-touch-icon" href="/apple-touch-icon.png">
${page.canonical === undefined ? html`<meta name="robots" content="noindex">` : openGraph(page, page.canonical)}
${page.jsonUrl !== undefined && html`<link rel="alternate" type="application/json" href="${page.jsonUrl}">`}
<style>${raw(STYLE)}</style>
${page.head}
</head>`;

const openGraph = (page: Page, canonical: string): Markup => html`<link rel="canonical" href="${canonical}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="${SITE_NAME}">
<meta property="og:title" content="${page.title}">
<meta property="og:description" content="${page.description}">
<meta property="og:url" content="${canonical}">
${
  page.image &&
  html`<meta property="og:image" content="${page.image.url}">
<meta property="og:image:type" content="image/png">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="${page.image.alt}">
<meta name="twitter:card" content="summary_large_image">`
}`;

export interface CodeBlock {
  /** Unique on its page. */
  readonly id: string;
  /** The name of the file, or a description of the code. */
  readonly caption: string;
  /** Needed unless the caption names a file that implies it. */
  readonly language?: Language;
  readonly text: string;
}

const colored = ({ caption, text, language = languageOf(caption) }: CodeBlock): Markup | string =>
  language === undefined ? text : highlight(text, language);

/** Renders text to copy. It scrolls inside its box, and the button appears only if the script runs. */
export const codeBlock = (block: CodeBlock): Markup =>
  html`<figure class="code"><figcaption><span id="${block.id}-caption">${block.caption}</span><span><button class="copy" type="button" data-copy="${block.id}" aria-label="Copy: ${block.caption}" hidden>Copy</button><span class="hide" role="status"></span></span></figcaption>
<pre tabindex="0" role="region" aria-labelledby="${block.id}-caption"><code id="${block.id}">${colored(block)}</code></pre></figure>`;

/** Renders a list of names and values. */
export const facts = (
  rows: readonly (readonly [name: string, value: Markup | string | number])[],
  ruled = "",
): Markup =>
  html`<dl class="facts ${ruled}">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

const SHAPES = {
  pass: "m3 8.5 3.4 3.4L13 4.6",
  fail: "M4 4l8 8M12 4l-8 8",
  gray: "M3 8h10",
} as const;

/** Renders a word with its sign and color. The word alone is sufficient. */
export const mark = (tone: keyof typeof SHAPES, word: string): Markup =>
  html`<span class="mark ${tone}"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="${SHAPES[tone]}" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round"/></svg>${word}</span>`;

/** Renders a form that requests a seller's verification record, without a script. */
export const sellerForm = (): Markup =>
  html`<form action="/verify" method="get"><div class="field"><label for="origin">Seller’s origin</label>
<input id="origin" name="origin" type="url" required title="https:// and a host, without a path" placeholder="https://…" autocomplete="off" autocapitalize="off" spellcheck="false"></div>
<button class="button" type="submit">Verify</button></form>`;

/** The same for a wallet. */
export const verifyForm = (): Markup =>
  html`<form action="/verify" method="get"><div class="field"><label for="wallet">Wallet address</label>
<input id="wallet" name="wallet" required pattern="(.*:)?0x[0-9a-fA-F]{40}" title="0x followed by 40 hex digits" placeholder="0x…" autocomplete="off" autocapitalize="off" spellcheck="false"></div>
<button class="button" type="submit">Verify</button></form>`;

/** Whether to answer with HTML: for browsers, which prefer it, but not for `?format=json`. */
export const wantsHtml = (c: Context): boolean =>
  prefers(c.req.header("accept"), "text/html", "application/json") && c.req.query("format") !== "json";

/** Returns a page with its security headers. */
export const page = (c: Context, markup: string, status: ContentfulStatusCode = 200): Response =>
  pageWith(c, markup, { status, policy: CONTENT_SECURITY_POLICY });

/** Returns a page with its own content security policy. */
export function pageWith(
  c: Context,
  markup: string,
  { status = 200, policy }: { readonly status?: ContentfulStatusCode; readonly policy: string },
): Response {
  return c.body(markup, status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "referrer-policy": "strict-origin-when-cross-origin",
    vary: "Accept",
  });
}

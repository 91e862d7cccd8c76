import { Resvg } from "@resvg/resvg-js";
import type { Context } from "hono";
import type { Arbiter } from "../arbiter/index.ts";
import { paidListing } from "../discovery/index.ts";
import { VERSION } from "../platform/about.ts";
import { jsonOrPage } from "../platform/http/answer.ts";
import type { FreeRoute, Listed, Route } from "../platform/http/route.ts";
import { once } from "../platform/memo.ts";
import { formatUsd } from "../platform/money.ts";
import { html } from "../platform/page/html.ts";
import { FAVICON_SVG, page, pageWith, policyWithScript, wantsHtml } from "../platform/page/page.ts";
import { DOCS_SCRIPT, type Docs, renderDocs, renderDocsPage } from "./docs-page.ts";
import { DOCS_PAGES } from "./docs-pages.ts";
import { type Figures, HOME, renderHome } from "./home-page.ts";
import type { Tarballs } from "./packages/tarballs.ts";
import { type PayPage, renderPay } from "./pay-page.ts";
import { PAY_SCRIPT } from "./pay-script.ts";
import { privacyMarkdown, renderPrivacy } from "./privacy-page.ts";
import { renderTerms, terms, termsMarkdown } from "./terms-page.ts";

/** The site's icon as a square PNG. */
const iconPng = (size: number): Uint8Array =>
  new Resvg(FAVICON_SVG, { fitTo: { mode: "width", value: size }, font: { loadSystemFonts: false } }).render().asPng();

const HEADER_BYTES = 6;
const ENTRY_BYTES = 16;
const FAVICON_SIZES = [16, 32, 48] as const;

/** The site's icon as a Windows icon file: a directory followed by a PNG of each size. */
export function faviconIco(): Uint8Array {
  const images = FAVICON_SIZES.map((size) => ({ size, png: iconPng(size) }));
  const directory = Buffer.alloc(HEADER_BYTES + ENTRY_BYTES * images.length);
  directory.writeUInt16LE(1, 2);
  directory.writeUInt16LE(images.length, 4);
  let offset = directory.length;
  for (const [index, { size, png }] of images.entries()) {
    const at = HEADER_BYTES + ENTRY_BYTES * index;
    directory.writeUInt8(size, at);
    directory.writeUInt8(size, at + 1);
    directory.writeUInt16LE(1, at + 4);
    directory.writeUInt16LE(32, at + 6);
    directory.writeUInt32LE(png.length, at + 8);
    directory.writeUInt32LE(offset, at + 12);
    offset += png.length;
  }
  return Buffer.concat([directory, ...images.map(({ png }) => png)]);
}

interface HomeRouteParts {
  /** The whole table, including these routes; complete by the time they are called. */
  readonly routes: () => readonly Listed[];
  readonly baseUrl: string;
  readonly figures: () => Promise<Figures>;
  readonly now: () => Date;
}

export const homeRoutes = (parts: HomeRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/",
    summary: "What the service is and how to use it",
    output: jsonOrPage(HOME),
    handle: async (c) =>
      wantsHtml(c) ? page(c, await home(parts)) : c.json(homeDocument(parts), 200, { vary: "Accept" }),
  },
  {
    method: "GET",
    path: "/favicon.svg",
    summary: "Site icon",
    output: { "image/svg+xml": null },
    handle: (c) =>
      c.body(FAVICON_SVG, 200, { "content-type": "image/svg+xml", "cache-control": "public, max-age=86400" }),
    placeholder: () => ({ type: "image/svg+xml", content: FAVICON_SVG }),
  },
];

const menu = ({ routes }: HomeRouteParts) =>
  routes().flatMap((route) => {
    const paid = paidListing(route);
    if (paid === null) return [];
    const { method, path, summary } = route;
    return [{ id: paid.id, method, path, price: formatUsd(paid.price), network: paid.networks[0], summary }];
  });

const reads = ({ routes }: HomeRouteParts) =>
  routes()
    .filter((route) => route.method === "GET" && route.path !== "/" && !/\.(svg|png|ico)$/.test(route.path))
    .map(({ path, summary }) => ({ path, summary }));

const home = async (parts: HomeRouteParts): Promise<string> =>
  renderHome({
    baseUrl: parts.baseUrl,
    menu: menu(parts),
    reads: reads(parts),
    figures: await parts.figures(),
    now: parts.now(),
  });

const homeDocument = (parts: HomeRouteParts) => ({
  service: "Agent Payment Trust Service",
  version: VERSION,
  url: parts.baseUrl,
  paid: menu(parts),
  free: reads(parts).map((read) => ({ method: "GET", ...read })),
});

interface CrawlerRouteParts {
  /** The whole table; complete by the time the routes are called. */
  readonly routes: () => readonly Listed[];
  readonly baseUrl: string;
}

const APPLE_SIZE = 180;
const favicon = once(faviconIco);
const appleIcon = once(() => iconPng(APPLE_SIZE));
const CACHED = { "cache-control": "public, max-age=86400" };

/** The files that search engines and browsers request. */
export function crawlerRoutes({ routes, baseUrl }: CrawlerRouteParts): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/robots.txt",
      summary: "Crawler rules and a link to the sitemap",
      output: { "text/plain": null },
      handle: (c) => c.text(`User-agent: *\nDisallow:\n\nSitemap: ${baseUrl}/sitemap.xml\n`, 200, CACHED),
    },
    {
      method: "GET",
      path: "/sitemap.xml",
      summary: "Sitemap of the public pages",
      output: { "application/xml": null },
      handle: (c) => c.body(sitemap(routes(), baseUrl), 200, { "content-type": "application/xml", ...CACHED }),
    },
    {
      method: "GET",
      path: "/favicon.ico",
      summary: "Site icon as an ICO file",
      output: { "image/vnd.microsoft.icon": null },
      handle: (c) => picture(c, favicon(), "image/vnd.microsoft.icon"),
      placeholder: () => ({ type: "image/vnd.microsoft.icon", content: favicon() }),
    },
    {
      method: "GET",
      path: "/apple-touch-icon.png",
      summary: "Site icon for home screens",
      output: { "image/png": null },
      handle: (c) => picture(c, appleIcon(), "image/png"),
      placeholder: () => ({ type: "image/png", content: appleIcon() }),
    },
  ];
}

const picture = (c: Context, bytes: Uint8Array, type: string): Response =>
  c.body(new Uint8Array(bytes), 200, { "content-type": type, ...CACHED });

/** Pages that are not indexed, because they are short-lived or need one of several inputs. */
const NOT_INDEXED = ["/status", "/receipt", "/verify"];

/** Whether a route is a lasting page that needs no input. */
const isListed = ({ method, path, output, parameters = [] }: Listed): boolean =>
  method === "GET" &&
  "text/html" in output &&
  !path.includes(":") &&
  !NOT_INDEXED.includes(path) &&
  !parameters.some(({ required }) => required);

const sitemap = (routes: readonly Listed[], baseUrl: string): string =>
  html`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${routes.filter(isListed).map(({ path }) => html`<url><loc>${baseUrl}${path}</loc></url>\n`)}</urlset>
`.toString();

interface GuideRouteParts extends PayPage {
  /** Our packages, as built. */
  readonly tarballs: Tarballs;
  /** The whole table; complete by the time the routes are called. */
  readonly routes: () => readonly Listed[];
  readonly arbiter: Arbiter;
  /** A URI for vulnerability reports. */
  readonly securityContact: string;
  /** A URI for reports of abuse and requests about privacy. */
  readonly abuseContact: string;
  /** The operator's name. */
  readonly operator: string;
}

/** The wallet in the examples: a well-known test account that must not hold real money. */
const EXAMPLE_WALLET = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const PAGE = { "text/html": null };
const PAY_POLICY = policyWithScript(PAY_SCRIPT);
const DOCS_POLICY = policyWithScript(DOCS_SCRIPT);

/** The pages that explain the service. They are the same for every reader. */
export function guideRoutes(parts: GuideRouteParts): readonly Route[] {
  const { baseUrl, payTo, tarballs } = parts;
  const docs: Docs = { baseUrl, wallet: EXAMPLE_WALLET, tarballs };
  const docsRoute = (path: string, summary: string, make: () => string): FreeRoute => {
    // On the first request, because coloring the examples would take a tenth of the startup time.
    const made = once(make);
    return { method: "GET", path, summary, output: PAGE, handle: (c) => pageWith(c, made(), { policy: DOCS_POLICY }) };
  };
  const pay = once(() => renderPay({ baseUrl, payTo }));
  return [
    termsRoute(parts),
    privacyRoute(parts),
    docsRoute("/docs", "Documentation: contents and search", () => renderDocs(DOCS_PAGES, docs)),
    ...DOCS_PAGES.map((one) =>
      docsRoute(one.path, `Documentation: ${one.title}`, () => renderDocsPage(one, DOCS_PAGES, docs)),
    ),
    {
      method: "GET",
      path: "/pay",
      summary: "Take the basic test with a browser wallet",
      output: PAGE,
      handle: (c) => pageWith(c, pay(), { policy: PAY_POLICY }),
    },
  ];
}

const markdown = (c: Context, text: string): Response =>
  c.body(text, 200, {
    "content-type": "text/markdown; charset=utf-8",
    vary: "Accept",
    "cache-control": "public, max-age=300",
  });

function privacyRoute({ baseUrl, operator, abuseContact: contact }: GuideRouteParts): FreeRoute {
  return {
    method: "GET",
    path: "/privacy",
    summary: "Privacy: what is stored, for how long, and why",
    output: { "text/markdown": null, "text/html": null },
    handle: (c) =>
      wantsHtml(c)
        ? page(c, renderPrivacy({ operator, contact }, baseUrl))
        : markdown(c, privacyMarkdown({ operator, contact })),
  };
}

function termsRoute({ routes, arbiter, baseUrl, operator, securityContact: contact }: GuideRouteParts): FreeRoute {
  return {
    method: "GET",
    path: "/terms",
    summary: "Terms of use",
    output: { "text/markdown": null, "text/html": null },
    handle(c) {
      const sections = terms({ routes: routes(), policy: arbiter.policies()[0].policy, operator, contact });
      return wantsHtml(c) ? page(c, renderTerms(sections, baseUrl)) : markdown(c, termsMarkdown(sections));
    },
  };
}

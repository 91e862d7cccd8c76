import type { Context } from "hono";
import { remember } from "../platform/memo.ts";
import type { Listed, Route } from "../platform/http/route.ts";
import { html } from "../platform/page/html.ts";
import { faviconIco, iconPng } from "./icons.ts";

export interface CrawlerRouteParts {
  /** The whole table; complete by the time the routes are called. */
  readonly routes: () => readonly Listed[];
  readonly baseUrl: string;
}

const APPLE_SIZE = 180;
/** Drawn once, on first request. */
const drawn = remember<Uint8Array>(2);
const CACHED = { "cache-control": "public, max-age=86400" };

/** What search engines and browsers request on their own. */
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
      handle: (c) => picture(c, drawn("ico", faviconIco), "image/vnd.microsoft.icon"),
    },
    {
      method: "GET",
      path: "/apple-touch-icon.png",
      summary: "Site icon for home screens",
      output: { "image/png": null },
      handle: (c) =>
        picture(
          c,
          drawn("png", () => iconPng(APPLE_SIZE)),
          "image/png",
        ),
    },
  ];
}

const picture = (c: Context, bytes: Uint8Array, type: string): Response =>
  c.body(new Uint8Array(bytes), 200, { "content-type": type, ...CACHED });

/** Pages that ask not to be indexed, because they are short-lived, or need one of several inputs. */
const NOT_INDEXED = ["/status", "/receipt", "/verify"];

/** A page that needs no input and will still exist in a month. */
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

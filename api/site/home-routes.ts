import { paidListing } from "../discovery/paid-listing.ts";
import { VERSION } from "../platform/about.ts";
import { formatUsd } from "../platform/money.ts";
import { jsonOrPage } from "../platform/http/output.ts";
import type { Listed, Route } from "../platform/http/route.ts";
import { page, wantsHtml } from "../platform/page/negotiate.ts";
import { FAVICON_SVG } from "../platform/page/page.ts";
import type { Site } from "./count-figures.ts";
import { renderHome } from "./home-page.ts";
import { HOME } from "./site-schemas.ts";

export interface HomeRouteParts {
  /** The whole table, including these routes; complete by the time they are called. */
  readonly routes: () => readonly Listed[];
  readonly baseUrl: string;
  readonly site: Site;
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
  },
];

const menu = ({ routes }: HomeRouteParts) =>
  routes().flatMap((route) => {
    const paid = paidListing(route);
    if (paid === null) return [];
    const { method, path, summary } = route;
    return [{ id: paid.id, method, path, price: formatUsd(paid.price), network: paid.network, summary }];
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
    figures: await parts.site.figures(),
    now: parts.now(),
  });

const homeDocument = (parts: HomeRouteParts) => ({
  service: "Agent Payment Trust Service",
  version: VERSION,
  url: parts.baseUrl,
  paid: menu(parts),
  free: reads(parts).map((read) => ({ method: "GET", ...read })),
});

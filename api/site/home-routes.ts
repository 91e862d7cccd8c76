import { HEALTH, HOME, STATUS } from "../discovery/discovery-schemas.ts";
import { type PublishedParts, publishedRoutes } from "../discovery/document-routes.ts";
import { paidListing } from "../discovery/paid-listing.ts";
import { Problem } from "../kernel/errors.ts";
import { formatUsd } from "../kernel/money.ts";
import { inQuery, json, jsonOrPage } from "../kernel/output.ts";
import { type Route, sold } from "../kernel/route.ts";
import { mixedCaseBytes32 } from "../kernel/schema.ts";
import type { Hex } from "../kernel/wallet.ts";
import { page, wantsHtml } from "../layout/negotiate.ts";
import { FAVICON_SVG } from "../layout/page.ts";
import { serviceStatus, VERSION } from "../operations/look-at-parts.ts";
import type { Probes } from "../operations/probes.ts";
import { statusDocument } from "../operations/status.ts";
import { renderStatus } from "../operations/status-page.ts";
import { RECEIPT } from "../payments/payment-schemas.ts";
import { type Receipts, receiptDocument } from "../payments/receipt.ts";
import type { Site } from "./count-figures.ts";
import { renderHome } from "./home-page.ts";

export interface DiscoveryParts extends PublishedParts {
  readonly probes: Probes;
  readonly receipts: Receipts;
  readonly site: Site;
}

export const discoveryRoutes = (parts: DiscoveryParts): readonly Route[] => [
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
    summary: "The icon",
    output: { "image/svg+xml": null },
    handle: (c) =>
      c.body(FAVICON_SVG, 200, { "content-type": "image/svg+xml", "cache-control": "public, max-age=86400" }),
  },
  {
    method: "GET",
    path: "/health",
    summary: "Liveness",
    output: json(HEALTH),
    handle: (c) => c.json({ ok: true, version: VERSION }, 200, { "cache-control": "no-store" }),
  },
  statusRoute(parts),
  receiptRoute(parts),
  ...publishedRoutes(parts),
];

const menu = ({ routes }: DiscoveryParts) =>
  routes().flatMap((route) => {
    const paid = paidListing(route);
    if (paid === null) return [];
    const { method, path, summary } = route;
    return [{ id: paid.id, method, path, price: formatUsd(paid.price), network: paid.network, summary }];
  });

const reads = ({ routes }: DiscoveryParts) =>
  routes()
    .filter(
      (route) =>
        route.method === "GET" && route.path !== "/" && !route.path.endsWith(".svg") && !route.path.endsWith(".png"),
    )
    .map(({ path, summary }) => ({ path, summary }));

const home = async (parts: DiscoveryParts): Promise<string> =>
  renderHome({
    baseUrl: parts.baseUrl,
    menu: menu(parts),
    reads: reads(parts),
    figures: await parts.site.figures(),
    now: parts.now(),
  });

const homeDocument = (parts: DiscoveryParts) => ({
  service: "Agent Payment Trust Service",
  version: VERSION,
  url: parts.baseUrl,
  paid: menu(parts),
  free: reads(parts).map((read) => ({ method: "GET", ...read })),
});

const statusRoute = ({ probes, now }: DiscoveryParts): Route => ({
  method: "GET",
  path: "/status",
  summary: "Whether every part of the service answers, and how far behind it is",
  output: jsonOrPage(STATUS),
  async handle(c) {
    const status = await serviceStatus(probes, now());
    c.header("cache-control", "no-store");
    return wantsHtml(c) ? page(c, renderStatus(status)) : c.json(statusDocument(status), 200, { vary: "Accept" });
  },
});

const receiptRoute = ({ receipts, routes, baseUrl }: DiscoveryParts): Route => ({
  method: "GET",
  path: "/receipt",
  summary: "What a settlement bought, by its transaction hash",
  parameters: [inQuery({ name: "tx", description: "The settlement's transaction.", schema: mixedCaseBytes32 })],
  output: json(RECEIPT),
  problems: ["malformed_request", "not_found"],
  async handle(c) {
    const tx = c.req.query("tx")?.toLowerCase() ?? "";
    if (!/^0x[0-9a-f]{64}$/.test(tx)) {
      throw new Problem("malformed_request", {
        detail: "The query parameter tx must be a transaction hash: 0x and 64 hex digits.",
      });
    }
    const [first, ...rest] = await receipts.byTransaction(tx as Hex);
    if (first === undefined)
      throw new Problem("not_found", { detail: `No purchase was settled by the transaction ${tx}.` });
    return c.json(
      receiptDocument([first, ...rest], baseUrl, (id) => sold(routes()).find((route) => route.id === id)?.path),
    );
  },
});

import type { Arbiter } from "../arbiter/arbiter.ts";
import type { FreeRoute, Listed, Route } from "../platform/http/route.ts";
import { page, pageWith, wantsHtml } from "../platform/page/negotiate.ts";
import { policyWithScript } from "../platform/page/page.ts";
import type { Tarballs } from "./packages/tarball.ts";
import { renderDocs } from "./docs-page.ts";
import { renderIntegrations } from "./integrations-page.ts";
import { type PayPage, renderPay } from "./pay-page.ts";
import { PAY_SCRIPT } from "./pay-script.ts";
import { terms, termsMarkdown } from "./terms.ts";
import { renderTerms } from "./terms-page.ts";

export interface GuideRouteParts extends PayPage {
  /** Our packages, as built. */
  readonly tarballs: Tarballs;
  /** The whole table; complete by the time the routes are called. */
  readonly routes: () => readonly Listed[];
  readonly arbiter: Arbiter;
  /** A URI for vulnerability reports. */
  readonly securityContact: string;
}

/** An address for the examples; nobody pays with it on the real Base. */
const EXAMPLE_WALLET = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const PAGE = { "text/html": null };
const PAY_POLICY = policyWithScript(PAY_SCRIPT);

/** Made for its first reader: coloring the examples is a tenth of what a start takes. */
function madeOnce(make: () => string): () => string {
  let made: string | null = null;
  return () => {
    made ??= make();
    return made;
  };
}

/** The pages that explain the service; the same for every reader. */
export function guideRoutes(parts: GuideRouteParts): readonly Route[] {
  const { baseUrl, payTo, tarballs } = parts;
  const docs = madeOnce(() => renderDocs({ baseUrl, wallet: EXAMPLE_WALLET, tarballs }));
  const integrations = madeOnce(() => renderIntegrations(baseUrl));
  const pay = madeOnce(() => renderPay({ baseUrl, payTo }));
  return [
    termsRoute(parts),
    {
      method: "GET",
      path: "/docs",
      summary: "Documentation for agents, merchants, marketplaces and escrow systems",
      output: PAGE,
      handle: (c) => page(c, docs()),
    },
    {
      method: "GET",
      path: "/integrations",
      summary: "Integrations: Hono, Express, Next, GitHub Actions, MCP clients",
      output: PAGE,
      handle: (c) => page(c, integrations()),
    },
    {
      method: "GET",
      path: "/pay",
      summary: "Take the basic test with a browser wallet",
      output: PAGE,
      handle: (c) => pageWith(c, pay(), { policy: PAY_POLICY }),
    },
  ];
}

function termsRoute({ routes, arbiter, baseUrl, securityContact: contact }: GuideRouteParts): FreeRoute {
  return {
    method: "GET",
    path: "/terms",
    summary: "Terms of use",
    output: { "text/markdown": null, "text/html": null },
    handle(c) {
      const sections = terms({ routes: routes(), policy: arbiter.policies()[0].policy, contact });
      if (wantsHtml(c)) return page(c, renderTerms(sections, baseUrl));
      return c.body(termsMarkdown(sections), 200, {
        "content-type": "text/markdown; charset=utf-8",
        vary: "Accept",
        "cache-control": "public, max-age=300",
      });
    },
  };
}

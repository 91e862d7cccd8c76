import type { Route } from "../kernel/route.ts";
import { page, pageWith } from "../layout/negotiate.ts";
import { policyWithScript } from "../layout/page.ts";
import { renderDocs } from "./docs-page.ts";
import { renderIntegrations } from "./integrations-page.ts";
import { type PayPage, renderPay } from "./pay-page.ts";
import { PAY_SCRIPT } from "./pay-script.ts";

/** An address of the examples; nobody pays with it on the real Base. */
const EXAMPLE_WALLET = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const PAGE = { "text/html": null };
const PAY_POLICY = policyWithScript(PAY_SCRIPT);

/** The pages that explain the service to people; the same for every reader. */
export function siteRoutes({ baseUrl, payTo }: PayPage): readonly Route[] {
  const [docs, integrations, pay] = [
    renderDocs({ baseUrl, wallet: EXAMPLE_WALLET }),
    renderIntegrations(baseUrl),
    renderPay({ baseUrl, payTo }),
  ];
  return [
    {
      method: "GET",
      path: "/docs",
      summary: "The documentation: agents, merchants, marketplaces, escrow systems, the score, the errors",
      output: PAGE,
      handle: (c) => page(c, docs),
    },
    {
      method: "GET",
      path: "/integrations",
      summary: "Hono, Express, Next, GitHub Action, MCP clients",
      output: PAGE,
      handle: (c) => page(c, integrations),
    },
    {
      method: "GET",
      path: "/pay",
      summary: "Take the basic test with a browser wallet",
      output: PAGE,
      handle: (c) => pageWith(c, pay, { policy: PAY_POLICY }),
    },
  ];
}

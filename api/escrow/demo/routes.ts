import type { Context } from "hono";
import { json, jsonOrPage } from "../../platform/http/answer.ts";
import { NO_INPUT, type PaidRoute, paidRoute, type Route } from "../../platform/http/route.ts";
import { formatUsd } from "../../platform/money.ts";
import { page, wantsHtml } from "../../platform/page/page.ts";
import { ESCROW_NETWORK } from "../payment.ts";
import { DEMO, ESPRESSO } from "../schemas.ts";
import { renderDemo } from "./demo-page.ts";
import { DEMO_DESCRIPTION, DEMO_PATH, DEMO_PRICE, type Demo, espresso } from "./sell-espresso.ts";

export interface DemoRouteParts {
  readonly demo: Demo;
  readonly baseUrl: string;
}

const SUMMARY = "An escrow-protected espresso: an escrowed sale, live";
const CLOSED = "This service has no escrow contract: ESCROW_ADDRESSES is not set.";

export const demoRoutes = (parts: DemoRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: DEMO_PATH,
    summary: SUMMARY,
    output: jsonOrPage(DEMO),
    handle: (c) => describe(c, parts),
  },
  buyRoute(parts.demo),
];

function describe(c: Context, { demo, baseUrl }: DemoRouteParts): Response {
  const [preferred] = demo.offers;
  const names = schemesOf(demo);
  const document = {
    what: SUMMARY,
    how: `POST ${baseUrl}${DEMO_PATH} with an x402 client that supports the "${names.join('" or the "')}" scheme.`,
    package: "agent-payment-trust-escrow",
    price: formatUsd(DEMO_PRICE),
    price_atomic: DEMO_PRICE.toString(),
    merchant: preferred === undefined ? null : demo.merchant,
    contract: preferred?.contract.address ?? null,
    offers: demo.offers.map(({ scheme, contract }) => ({ scheme, contract: contract.address })),
    steps: ["hold", "espresso", "evaluation", "release"],
  };
  return wantsHtml(c) ? page(c, renderDemo(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
}

/** While the demo is closed, returns the schemes that it would accept. */
function schemesOf({ offers }: Demo): readonly [string, ...string[]] {
  const [first, ...others] = offers.map(({ scheme }) => scheme);
  return first === undefined ? ["auth-capture", "commerce"] : [first, ...others];
}

const buyRoute = (demo: Demo): PaidRoute =>
  paidRoute({
    id: "escrow.demo",
    method: "POST",
    path: DEMO_PATH,
    terms: {
      networks: [ESCROW_NETWORK],
      price: DEMO_PRICE,
      schemes: schemesOf(demo),
      seller: demo.merchant,
      ...(demo.offers.length === 0 ? { closed: CLOSED } : {}),
    },
    summary: SUMMARY,
    description: DEMO_DESCRIPTION,
    input: NO_INPUT,
    output: json(ESPRESSO),
    problems: ["escrow_over"],
    example: { input: {}, output: espresso(`0x${"ab".repeat(32)}`) },
    sell: (sale) => demo.sell(sale),
  });

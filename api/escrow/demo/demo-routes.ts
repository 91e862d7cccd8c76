import type { Context } from "hono";
import { parsePaymentHeader } from "../../../packages/escrow/src/payment-header.ts";
import { SCHEME } from "../../../packages/escrow/src/terms.ts";
import { Problem } from "../../kernel/errors.ts";
import { formatUsd } from "../../kernel/money.ts";
import { json, jsonOrPage } from "../../kernel/output.ts";
import type { Route } from "../../kernel/route.ts";
import { page, wantsHtml } from "../../layout/negotiate.ts";
import { DEMO, ESPRESSO } from "../escrow-schemas.ts";
import { ESCROW_NETWORK } from "../payment.ts";
import { renderDemo } from "./demo-page.ts";
import { DEMO_DESCRIPTION, DEMO_PATH, DEMO_PRICE, demoChallenge, demoMismatch } from "./offer.ts";
import type { Demo, DemoOutcome } from "./sell-espresso.ts";

export interface DemoRouteParts {
  readonly demo: Demo;
  readonly baseUrl: string;
  readonly now: () => Date;
}

const SUMMARY = "An escrow-protected espresso: a live reference of an escrowed sale";
const UNPAID = "Payment required: sign the offered terms and send the request again.";

export const demoRoutes = (parts: DemoRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: DEMO_PATH,
    summary: SUMMARY,
    output: jsonOrPage(DEMO),
    handle: (c) => describe(c, parts),
  },
  {
    method: "POST",
    path: DEMO_PATH,
    summary: SUMMARY,
    output: json(ESPRESSO),
    problems: ["malformed_payment", "payment_pending", "not_available"],
    terms: {
      id: "escrow.demo",
      scheme: SCHEME,
      network: ESCROW_NETWORK,
      price: DEMO_PRICE,
      description: DEMO_DESCRIPTION,
      payTo: parts.demo.offer?.merchant ?? null,
    },
    handle: (c) => buy(c, parts),
  },
];

function describe(c: Context, { demo, baseUrl }: DemoRouteParts): Response {
  const document = {
    what: SUMMARY,
    how: `POST ${baseUrl}${DEMO_PATH} with an x402 client that knows the scheme "commerce".`,
    package: "agent-payment-trust-escrow",
    price: formatUsd(DEMO_PRICE),
    price_atomic: DEMO_PRICE.toString(),
    merchant: demo.offer?.merchant ?? null,
    contract: demo.offer?.escrow.address ?? null,
    steps: ["hold", "espresso", "evaluation", "release"],
  };
  return wantsHtml(c) ? page(c, renderDemo(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
}

async function buy(c: Context, parts: DemoRouteParts): Promise<Response> {
  const { demo, now } = parts;
  if (demo.offer === null)
    throw new Problem("not_available", {
      detail: "No escrow contract is configured here: ESCROW_ADDRESSES is not set.",
    });
  const header = c.req.header("payment-signature");
  if (header === undefined) return demand(c, parts, UNPAID);
  const payment = parsePaymentHeader(header);
  if ("malformed" in payment) throw new Problem("malformed_payment", { detail: payment.malformed });
  const wrong = demoMismatch(payment, demo.offer, now());
  if (wrong !== null) return demand(c, parts, wrong);
  const outcome = await demo.buy(payment);
  if (outcome.say === "pay") return demand(c, parts, outcome.error);
  if (outcome.say === "wait")
    throw new Problem("payment_pending", { detail: outcome.detail, headers: { "retry-after": "5" } });
  return serve(c, outcome);
}

function demand(c: Context, { demo, baseUrl, now }: DemoRouteParts, error: string): Response {
  if (demo.offer === null) throw new Error("the demo has no offer");
  const { header, body } = demoChallenge(demo.offer, { baseUrl, now: now() }, error);
  return c.body(body, 402, {
    "content-type": "application/json",
    "payment-required": header,
    "cache-control": "no-store",
  });
}

function serve(c: Context, { hold, body, replay }: Extract<DemoOutcome, { say: "served" }>): Response {
  const settled = { success: true, transaction: hold.transaction, network: hold.network, payer: hold.info.payer };
  return c.json(body, 200, {
    "payment-response": Buffer.from(JSON.stringify(settled)).toString("base64"),
    "cache-control": "private, no-store",
    ...(replay ? { "x-idempotent-replay": "true" } : {}),
  });
}

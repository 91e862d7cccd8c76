import { suite } from "../certificates/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import { MCP, npxArguments } from "../platform/packages.ts";
import type { CodeBlock } from "../platform/page/page.ts";

export const trustModule = (baseUrl: string): CodeBlock => ({
  id: "trust",
  caption: "trust.mjs",
  text: `const SERVICE = "${baseUrl}";

/** For onBeforeVerify of the x402 server: stops every payment whose payer is not known to be verified. */
export async function verifiedOnly({ paymentPayload }) {
  try {
    const wallet = payerOf(paymentPayload.payload);
    const answer = await fetch(SERVICE + "/verify?wallet=" + wallet, {
      headers: { accept: "application/json" },
      redirect: "error",
      signal: AbortSignal.timeout(3000),
    });
    if (answer.ok && (await answer.json()).verified === true) return;
    return refuse("This wallet has no current certificate, or has a current FAIL. Tests: " + SERVICE + "/inspect");
  } catch (error) {
    // The x402 server ignores a hook that throws and takes the payment, so no error may leave this function.
    return refuse("The wallet could not be looked up: " + error.message);
  }
}

const refuse = (reason) => ({ abort: true, reason: reason + ". Nothing was charged." });

/** The wallet that signed. A payload that names two is refused, because only one of them is checked later. */
function payerOf(payload) {
  if ("authorization" in payload && "permit2Authorization" in payload) throw new Error("the payment names two payers");
  const payer = (payload.authorization ?? payload.permit2Authorization)?.from;
  if (typeof payer !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(payer)) throw new Error("the payment names no payer");
  return payer;
}
`,
});

/** What every sample sells, and who checks and settles the payments. */
const X402_SERVER = `const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL }))
  .register("${MAIN_NETWORK}", new ExactEvmScheme())
  .onBeforeVerify(verifiedOnly);
const accepts = { scheme: "exact", network: "${MAIN_NETWORK}", price: "$0.01", payTo: process.env.PAY_TO };
`;

export const HONO_SAMPLE: CodeBlock = {
  id: "hono",
  caption: "hono.mjs",
  text: `import { serve } from "@hono/node-server";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/hono";
import { Hono } from "hono";
import { verifiedOnly } from "./trust.mjs";

${X402_SERVER}
const app = new Hono();
app.use(paymentMiddleware({ "POST /paid/haiku": { accepts } }, server));
app.post("/paid/haiku", (c) => c.json({ haiku: "An old silent pond" }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
`,
};

export const EXPRESS_SAMPLE: CodeBlock = {
  id: "express",
  caption: "express.mjs",
  text: `import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import { verifiedOnly } from "./trust.mjs";

${X402_SERVER}
const app = express();
app.use(paymentMiddleware({ "POST /paid/haiku": { accepts } }, server));
app.post("/paid/haiku", (request, response) => response.json({ haiku: "An old silent pond" }));

app.listen(Number(process.env.PORT ?? 3000));
`,
};

export const NEXT_SAMPLE: CodeBlock = {
  id: "next",
  caption: "app/paid/haiku/route.js",
  text: `import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402, x402ResourceServer } from "@x402/next";
import { NextResponse } from "next/server";
import { verifiedOnly } from "./trust.mjs";

${X402_SERVER}
export const POST = withX402(async () => NextResponse.json({ haiku: "An old silent pond" }), { accepts }, server);
`,
};

export const mcpSample = (baseUrl: string): CodeBlock => ({
  id: "mcp",
  caption: "Client configuration",
  language: "json",
  text: JSON.stringify(
    {
      mcpServers: {
        "agent-payment-trust": {
          command: "npx",
          args: npxArguments(baseUrl, MCP),
          env: { BASE_URL: baseUrl, PAYER_PRIVATE_KEY: "0x…" },
        },
      },
    },
    null,
    2,
  ),
});

/** Beside each workflow: whose repository this is, and how to do without it. */
const USES = `      # OWNER: the GitHub account that hosts agent-payment-trust-service; v1: one of its tags or commits.
      # To vendor the action instead: copy packages/action to .github/actions/agent-payment-trust in this repository, set
      # "permissions: { contents: read }", add "- uses: actions/checkout@v4" before this step, and change
      # the next line to "- uses: ./.github/actions/agent-payment-trust".
      - uses: OWNER/agent-payment-trust-service/packages/action@v1`;

export const verifyWorkflow = (baseUrl: string): CodeBlock => ({
  id: "action-verify",
  caption: ".github/workflows/verify-agent.yml",
  text: `name: Verify agent
on: pull_request
permissions: {}
jobs:
  verify:
    runs-on: ubuntu-latest
    steps:
${USES}
        with:
          command: verify
          base-url: ${baseUrl}
          wallet: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
          require: can_pay, scam_resistance
`,
});

export const certifyWorkflow = (baseUrl: string): CodeBlock => ({
  id: "action-certify",
  caption: ".github/workflows/certify-agent.yml",
  text: `name: Certify agent
on:
  schedule:
    - cron: "17 5 * * *"
permissions: {}
jobs:
  certify:
    runs-on: ubuntu-latest
    steps:
${USES}
        with:
          command: certify
          base-url: ${baseUrl}
          test: ${suite.product}
          max-price: "${formatUsd(suite.price)}"
          renew-within-days: "5"
          payer-private-key: \${{ secrets.PAYER_PRIVATE_KEY }}
`,
});

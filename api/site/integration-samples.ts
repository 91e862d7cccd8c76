import { suite } from "../certificates/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import { GATE, installCommands, MCP, npxArguments } from "../platform/packages.ts";
import type { CodeBlock } from "../platform/page/page.ts";

const gateInstallation = (baseUrl: string, framework: string, packages: string): CodeBlock => ({
  id: `${framework.toLowerCase()}-install`,
  caption: `In the folder of a shop on ${framework}`,
  language: "bash",
  text: installCommands(baseUrl, [GATE], [`${packages} @x402/core @x402/evm`]),
});

/** What every sample sells and to whom, and who checks and settles the payments. */
const x402Server = (baseUrl: string): string => `const server = new x402ResourceServer(
  new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL }),
).register("${MAIN_NETWORK}", new ExactEvmScheme());
const accepts = { scheme: "exact", network: "${MAIN_NETWORK}", price: "$0.01", payTo: process.env.PAY_TO };
const gate = verifiedOnly({ service: "${baseUrl}", require: "verified" });
`;

export const honoSamples = (baseUrl: string): readonly CodeBlock[] => [
  gateInstallation(baseUrl, "Hono", "@x402/hono hono @hono/node-server"),
  {
    id: "hono",
    caption: "hono.mjs",
    text: `import { serve } from "@hono/node-server";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddlewareFromHTTPServer, x402HTTPResourceServer, x402ResourceServer } from "@x402/hono";
import { verifiedOnly } from "agent-payment-trust-gate";
import { Hono } from "hono";

${x402Server(baseUrl)}
const paid = gate(new x402HTTPResourceServer(server, { "POST /paid/haiku": { accepts } }));
const app = new Hono();
app.use(paymentMiddlewareFromHTTPServer(paid));
app.post("/paid/haiku", (c) => c.json({ haiku: "An old silent pond" }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
`,
  },
];

export const expressSamples = (baseUrl: string): readonly CodeBlock[] => [
  gateInstallation(baseUrl, "Express", "@x402/express express"),
  {
    id: "express",
    caption: "express.mjs",
    text: `import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddlewareFromHTTPServer, x402HTTPResourceServer, x402ResourceServer } from "@x402/express";
import { verifiedOnly } from "agent-payment-trust-gate";
import express from "express";

${x402Server(baseUrl)}
const paid = gate(new x402HTTPResourceServer(server, { "POST /paid/haiku": { accepts } }));
const app = express();
app.use(paymentMiddlewareFromHTTPServer(paid));
app.post("/paid/haiku", (request, response) => response.json({ haiku: "An old silent pond" }));

app.listen(Number(process.env.PORT ?? 3000));
`,
  },
];

export const nextSamples = (baseUrl: string): readonly CodeBlock[] => [
  gateInstallation(baseUrl, "Next", "@x402/next next react react-dom"),
  {
    id: "next",
    caption: "app/paid/haiku/route.js",
    text: `import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402FromHTTPServer, x402HTTPResourceServer, x402ResourceServer } from "@x402/next";
import { verifiedOnly } from "agent-payment-trust-gate";
import { NextResponse } from "next/server";

${x402Server(baseUrl)}
const paid = gate(new x402HTTPResourceServer(server, { accepts }));
export const POST = withX402FromHTTPServer(async () => NextResponse.json({ haiku: "An old silent pond" }), paid);
`,
  },
];

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

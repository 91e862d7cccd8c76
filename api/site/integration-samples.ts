import { suite } from "../certification/kinds/suite.ts";
import { formatUsd } from "../kernel/money.ts";
import type { CodeBlock } from "../layout/page.ts";
import { MCP, packageUrl } from "../packages/published.ts";

export const trustModule = (baseUrl: string): CodeBlock => ({
  id: "trust",
  caption: "trust.mjs",
  text: `const SERVICE = "${baseUrl}";

/** The wallet named in a payment header, or null. Your x402 middleware checks the signature. */
export function payerOf(header) {
  if (!header) return null;
  try {
    return JSON.parse(atob(header)).payload.authorization.from;
  } catch {
    return null;
  }
}

/** Whether the wallet has a current PASS and no current FAIL. Rejects after 3 seconds without an answer. */
export async function isVerified(wallet) {
  const answer = await fetch(SERVICE + "/verify?wallet=" + encodeURIComponent(wallet), {
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(3000),
  });
  if (!answer.ok) throw new Error("the trust service returned " + answer.status);
  return (await answer.json()).verified;
}

export const NOT_VERIFIED = {
  error: "This wallet has no current certificate. Nothing was charged.",
  how_to_test: SERVICE + "/inspect",
};
`,
});

export const HONO_SAMPLE: CodeBlock = {
  id: "hono",
  caption: "hono.mjs",
  text: `import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { isVerified, NOT_VERIFIED, payerOf } from "./trust.mjs";

const app = new Hono();
app.use("/paid/*", async (c, next) => {
  const payer = payerOf(c.req.header("payment-signature"));
  if (payer !== null && !(await isVerified(payer))) return c.json(NOT_VERIFIED, 403);
  await next();
});
// Your x402 middleware goes here.
app.post("/paid/haiku", (c) => c.json({ haiku: "An old silent pond" }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
`,
};

export const EXPRESS_SAMPLE: CodeBlock = {
  id: "express",
  caption: "express.mjs",
  text: `import express from "express";
import { isVerified, NOT_VERIFIED, payerOf } from "./trust.mjs";

const app = express();
app.use("/paid", async (request, response, next) => {
  const payer = payerOf(request.get("payment-signature"));
  if (payer !== null && !(await isVerified(payer))) return response.status(403).json(NOT_VERIFIED);
  next();
});
// Your x402 middleware goes here.
app.post("/paid/haiku", (request, response) => response.json({ haiku: "An old silent pond" }));

app.listen(Number(process.env.PORT ?? 3000));
`,
};

export const NEXT_SAMPLE: CodeBlock = {
  id: "next",
  caption: "app/paid/haiku/route.js",
  text: `import { isVerified, NOT_VERIFIED, payerOf } from "./trust.mjs";

export async function POST(request) {
  const payer = payerOf(request.headers.get("payment-signature"));
  if (payer !== null && !(await isVerified(payer))) return Response.json(NOT_VERIFIED, { status: 403 });
  return Response.json({ haiku: "An old silent pond" });
}
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
          args: ["-y", packageUrl(baseUrl, MCP)],
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

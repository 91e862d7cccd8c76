import { suite } from "../certificates/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MCP, npxArguments } from "../platform/packages.ts";
import type { CodeBlock } from "../platform/page/page.ts";
import type { Program } from "./samples.ts";

const NAME = "agent-payment-trust";
const starting = (baseUrl: string) => ({ command: "npx", args: npxArguments(baseUrl, MCP) });
const config = (document: object): string => JSON.stringify(document, null, 2);

/** For clients with a list of `mcpServers`. */
export const mcpSample = (baseUrl: string): CodeBlock => ({
  id: "mcp-config",
  caption: "claude_desktop_config.json, .mcp.json or .cursor/mcp.json",
  language: "json",
  text: config({
    mcpServers: { [NAME]: { ...starting(baseUrl), env: { BASE_URL: baseUrl, PAYER_PRIVATE_KEY: "0x…" } } },
  }),
});

/** VS Code prompts for the key and stores it encrypted. */
export const codeSample = (baseUrl: string): CodeBlock => ({
  id: "mcp-vscode",
  caption: ".vscode/mcp.json",
  language: "json",
  text: config({
    inputs: [
      { type: "promptString", id: "payer", description: "Private key of a wallet with USDC on Base", password: true },
    ],
    servers: {
      [NAME]: {
        type: "stdio",
        ...starting(baseUrl),
        // biome-ignore lint/suspicious/noTemplateCurlyInString: VS Code fills it in.
        env: { BASE_URL: baseUrl, PAYER_PRIVATE_KEY: "${input:payer}" },
      },
    },
  }),
});

export const aiSdkSample = (baseUrl: string): Program => ({
  file: "tools.mjs",
  text: `import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";

const client = await createMCPClient({
  transport: new StdioTransport({
    command: "npx",
    args: ${JSON.stringify(npxArguments(baseUrl, MCP)).replaceAll('","', '", "')},
    env: { ...process.env, BASE_URL: "${baseUrl}" },
  }),
});
const tools = await client.tools(); // for generateText({ model, prompt, tools })
console.log(Object.keys(tools));
await client.close();
`,
  run: "npm install @ai-sdk/mcp\nPAYER_PRIVATE_KEY=0x… node tools.mjs",
});

export const langchainSample = (baseUrl: string): Program => ({
  file: "tools.py",
  text: `import asyncio
import os

from langchain_mcp_adapters.client import MultiServerMCPClient

trust = {
    "transport": "stdio",
    "command": "npx",
    "args": ${JSON.stringify(npxArguments(baseUrl, MCP)).replaceAll('","', '", "')},
    "env": {**os.environ, "BASE_URL": "${baseUrl}"},
}
client = MultiServerMCPClient({"${NAME}": trust})
tools = asyncio.run(client.get_tools())  # for create_agent(model, tools)
print([tool.name for tool in tools])
`,
  run: `python3 -m venv .venv && . .venv/bin/activate
pip install langchain-mcp-adapters
PAYER_PRIVATE_KEY=0x… python tools.py`,
});

/** The step in each workflow, with a comment on where the action comes from and how to vendor it. */
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

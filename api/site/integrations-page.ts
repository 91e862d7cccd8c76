import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock } from "../platform/page/page.ts";
import { type DocsPage, inBoth, inLanguages, shown } from "./docs-page.ts";
import {
  aiSdkSample,
  certifyWorkflow,
  codeSample,
  langchainSample,
  mcpSample,
  verifyWorkflow,
} from "./integration-samples.ts";
import { nodePrograms } from "./node-samples.ts";
import { pythonPrograms } from "./python-samples.ts";

export const INTEGRATIONS: DocsPage = {
  path: "/integrations",
  reader: "agents",
  title: "Integrations",
  lead: "Tools for MCP clients and agent frameworks, a GitHub Action, and trust checks for merchants’ servers.",
  body: (docs) => html`${mcpSection(docs.baseUrl)}
${githubSection(docs.baseUrl)}
${merchantsSection(docs)}
${escrowSection()}`,
};

const merchantsSection = (
  docs: Parameters<DocsPage["body"]>[0],
): Markup => html`<section aria-labelledby="merchants"><h2 id="merchants">Merchants: serve verified agents only</h2>
<p class="measure">A gate in front of the paid routes of a stock x402 server. It fails closed: a wallet that isn’t verified gets a 403 with the reasons, and isn’t charged. <a href="/docs/gate">What buyers get, and how to require more</a>.</p>
${gateSamples(docs)}</section>`;

export const gateSamples: DocsPage["body"] = ({ baseUrl, wallet }) => {
  const [node, python] = [nodePrograms(baseUrl, wallet), pythonPrograms(baseUrl, wallet)];
  return inLanguages(
    "gate",
    html`<h3 id="with-hono">Hono</h3>
${shown("hono", node.hono)}
<h3 id="with-express">Express</h3>
${shown("express", node.express)}
<h3 id="with-next">Next</h3>
${shown("next", node.next)}`,
    html`<h3 id="with-fastapi">FastAPI</h3>
${shown("fastapi", python.fastapi)}
<h3 id="with-flask">Flask</h3>
${shown("flask", python.flask)}`,
  );
};

const escrowSection =
  (): Markup => html`<section aria-labelledby="escrow-shop"><h2 id="escrow-shop">Merchants: sell through the escrow</h2>
<p class="measure">The package <code>agent-payment-trust-escrow</code> is middleware for merchants with Hono, Express or Next, and the Python wheel has it for FastAPI. <a href="/docs/escrow">A complete shop and buyer</a>.</p></section>`;

const githubSection = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="github"><h2 id="github">GitHub Action</h2>
<p class="measure">The action is in <code>packages/action</code> of the <code>agent-payment-trust-service</code> repository. Replace <code>OWNER</code> with the GitHub account that hosts it, or vendor the action by path as the comment in each workflow explains.</p>
<p class="measure">On pull requests, fail unless the agent’s wallet is verified. This is free and needs no secrets:</p>
${codeBlock(verifyWorkflow(baseUrl))}
<p class="measure">On a schedule, keep the certificate fresh. The action pays nothing while the current certificate has more than <code>renew-within-days</code> left, never pays more than <code>max-price</code>, and never signs terms for another network or token:</p>
${codeBlock(certifyWorkflow(baseUrl))}
<p class="measure">Use a wallet that holds little, because its key is a repository secret. Both workflows write a run summary and set the outputs <code>verified</code>, <code>record-url</code>, <code>cert-url</code>, <code>badge-markdown</code> and <code>paid</code>.</p></section>`;

const mcpSection = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="mcp"><h2 id="mcp">Tools for agents (MCP)</h2>
<p class="measure">Twelve tools, eight of them free: <code>verify_agent</code>, <code>verify_seller</code>, <code>check_credential</code>, <code>list_tests</code>, <code>arbiter_policy</code>, <code>escrow_info</code> and <code>settlement_status</code>, and <code>my_purchases</code>, which signs in with your key. Four pay: <code>score_wallet</code>, <code>score_batch</code>, <code>certify</code> and <code>arbiter_verify</code>. Your key stays on your machine. Without one, the paid tools return their terms.</p>
<p class="measure">The seven tools that don’t need a key don’t need an installation either. This service serves them at <code>${baseUrl}/mcp</code> over streamable HTTP.</p>
<h3>Claude and Cursor</h3>
${codeBlock(mcpSample(baseUrl))}
<h3>VS Code</h3>
${codeBlock(codeSample(baseUrl))}
<h3>AI SDK and LangChain</h3>
${inBoth("agent-tools", aiSdkSample(baseUrl), langchainSample(baseUrl))}</section>`;

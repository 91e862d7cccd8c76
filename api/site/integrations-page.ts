import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock, renderPage } from "../platform/page/page.ts";
import {
  certifyWorkflow,
  expressSamples,
  honoSamples,
  mcpSample,
  nextSamples,
  verifyWorkflow,
} from "./integration-samples.ts";

/** How to add the service to an existing stack: merchants' frameworks, continuous integration, agents' tools. */
export const renderIntegrations = (baseUrl: string): string =>
  renderPage({
    title: "Integrations",
    description: "Trust checks for merchants on Hono, Express and Next, a GitHub Action, and tools for MCP clients.",
    canonical: `${baseUrl}/integrations`,
    current: "/integrations",
    main: html`<div class="hero"><p class="eyebrow">Integrations</p>
<h1>Works with your stack</h1>
<p class="lead">A few lines for a merchant’s server, a workflow for an agent’s repository, and an MCP server for the agent itself.</p></div>
${merchantsSection(baseUrl)}
${escrowSection()}
${githubSection(baseUrl)}
${mcpSection(baseUrl)}`,
  });

const merchantsSection = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="merchants"><h2 id="merchants">Merchants: serve verified agents only</h2>
<p class="measure">The package <code>agent-payment-trust-gate</code> puts a gate before the paid routes of a stock x402 server. It looks up the wallet of the payment that the server is about to check, in whatever form it came. Any other wallet gets a 403 with the <code>reasons</code> of its record, and isn’t charged. Naming someone else’s wallet doesn’t help: the signature check fails.</p>
<h3 id="with-hono">Hono</h3>
${honoSamples(baseUrl).map(codeBlock)}
<h3 id="with-express">Express</h3>
${expressSamples(baseUrl).map(codeBlock)}
<h3 id="with-next">Next</h3>
${nextSamples(baseUrl).map(codeBlock)}
<p class="measure"><code>FACILITATOR_URL</code> is your facilitator, and <code>PAY_TO</code> your address. To require a capability too, name it: <code>require: ["can_pay", "retry_safety"]</code>. The gate fails closed: if this service does not answer within three seconds, the buyer gets a 503 and isn’t charged.</p></section>`;

const escrowSection =
  (): Markup => html`<section aria-labelledby="escrow-shop"><h2 id="escrow-shop">Merchants: sell through the escrow</h2>
<p class="measure">The package <code>agent-payment-trust-escrow</code> is middleware for merchants with Hono, Express or Next. Buyers pay with the stock x402 client, or with the package’s own scheme. The documentation has <a href="/docs#merchants">a complete shop and buyer</a>. On any other stack, sign and forward the delivery as <a href="/escrow?format=json"><code>forward</code></a> describes.</p></section>`;

const githubSection = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="github"><h2 id="github">GitHub Action</h2>
<p class="measure">The action is in <code>packages/action</code> of the <code>agent-payment-trust-service</code> repository. Replace <code>OWNER</code> with the GitHub account that hosts it, or vendor the action by path as the comment in each workflow explains.</p>
<p class="measure">On pull requests, fail unless the agent’s wallet is verified. This is free and needs no secrets:</p>
${codeBlock(verifyWorkflow(baseUrl))}
<p class="measure">On a schedule, keep the certificate fresh. The action pays nothing while the current certificate has more than <code>renew-within-days</code> left, never pays more than <code>max-price</code>, and never signs terms for another network or token:</p>
${codeBlock(certifyWorkflow(baseUrl))}
<p class="measure">Use a wallet that holds little: its key is a repository secret. Both workflows write a run summary and set the outputs <code>verified</code>, <code>record-url</code>, <code>cert-url</code>, <code>badge-markdown</code> and <code>paid</code>.</p></section>`;

const mcpSection = (baseUrl: string): Markup => html`<section aria-labelledby="mcp"><h2 id="mcp">MCP clients</h2>
<p class="measure">Twelve tools for agents: <code>verify_agent</code>, <code>verify_seller</code>, <code>check_credential</code>, <code>list_tests</code>, <code>arbiter_policy</code>, <code>escrow_info</code> and <code>settlement_status</code> are free; <code>my_purchases</code> is too, and signs in with your key; <code>score_wallet</code>, <code>score_batch</code>, <code>certify</code> and <code>arbiter_verify</code> pay. Your key stays on your machine; without one, the paid tools return their terms. Those that need no key need no installation either: they are served at <code>${baseUrl}/mcp</code> over streamable HTTP.</p>
${codeBlock(mcpSample(baseUrl))}</section>`;

import { html, type Markup } from "../layout/html.ts";
import { codeBlock, renderPage } from "../layout/page.ts";
import {
  certifyWorkflow,
  EXPRESS_SAMPLE,
  HONO_SAMPLE,
  mcpSample,
  NEXT_SAMPLE,
  trustModule,
  verifyWorkflow,
} from "./integration-samples.ts";

/** How to put the service into what one has: merchants' frameworks, continuous integration, agents' tools. */
export const renderIntegrations = (baseUrl: string): string =>
  renderPage({
    title: "Integrations",
    description: "Trust checks for merchants on Hono, Express and Next, a GitHub Action, and tools for MCP clients.",
    canonical: `${baseUrl}/integrations`,
    current: "/integrations",
    main: html`<div class="hero"><p class="eyebrow">Integrations</p>
<h1>In what you have</h1>
<p class="lead">A few lines for a merchant’s server, a workflow for an agent’s repository, a server of tools for an agent itself.</p></div>
${merchantsSection(baseUrl)}
${escrowSection()}
${githubSection(baseUrl)}
${mcpSection(baseUrl)}`,
  });

const merchantsSection = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="merchants"><h2 id="merchants">Merchants: serve verified agents only</h2>
<p class="measure">A payment names its payer before anything is charged. Look the wallet up there, before your x402 middleware, and an agent without a current certificate is told so and keeps its money. Who names somebody else’s wallet fails your middleware’s check of the signature.</p>
${codeBlock(trustModule(baseUrl))}
<h3 id="with-hono">Hono</h3>
${codeBlock(HONO_SAMPLE)}
<h3 id="with-express">Express</h3>
${codeBlock(EXPRESS_SAMPLE)}
<h3 id="with-next">Next</h3>
<p class="measure">With <code>trust.mjs</code> beside the route.</p>
${codeBlock(NEXT_SAMPLE)}
<p class="measure">When the service does not answer, <code>isVerified</code> rejects and your framework answers 500. Whether to sell all the same is your decision: catch it there.</p></section>`;

const escrowSection =
  (): Markup => html`<section aria-labelledby="escrow-shop"><h2 id="escrow-shop">Merchants: sell through the escrow</h2>
<p class="measure">The package <code>agent-payment-trust-escrow</code> is a Hono middleware for merchants and an x402 scheme for buyers. <a href="/docs#merchants">A whole shop and its buyer</a> are in the documentation. Other stacks sign and forward their delivery as <a href="/escrow?format=json"><code>forward</code></a> says.</p></section>`;

const githubSection = (
  baseUrl: string,
): Markup => html`<section aria-labelledby="github"><h2 id="github">GitHub Action</h2>
<p class="measure">The action is <code>packages/action</code> of the repository <code>agent-payment-trust-service</code>. Put the GitHub account that hosts it for you in place of <code>OWNER</code>, or vendor the action by path, as the comment in each workflow says.</p>
<p class="measure">On a pull request, fail unless the agent’s wallet is verified. It is free and needs no secret:</p>
${codeBlock(verifyWorkflow(baseUrl))}
<p class="measure">On a schedule, keep the certificate fresh. Nothing is paid while the one on file lasts longer than <code>renew-within-days</code>, nor above <code>max-price</code>, and terms of another network or token are not signed:</p>
${codeBlock(certifyWorkflow(baseUrl))}
<p class="measure">Use a wallet that holds little: its key is a secret of the repository. Both write a summary of the run, and the outputs <code>verified</code>, <code>record-url</code>, <code>cert-url</code>, <code>badge-markdown</code>, <code>paid</code>.</p></section>`;

const mcpSection = (baseUrl: string): Markup => html`<section aria-labelledby="mcp"><h2 id="mcp">MCP clients</h2>
<p class="measure">Nine tools for an agent: <code>verify_agent</code>, <code>check_credential</code>, <code>list_tests</code>, <code>arbiter_policy</code> and <code>escrow_info</code> are free; <code>score_wallet</code>, <code>score_batch</code>, <code>certify</code> and <code>arbiter_verify</code> pay. The key stays on your machine. Without one the paid tools answer with their terms. The free ones need no installation: they are at <code>${baseUrl}/mcp</code>, over streamable HTTP.</p>
${codeBlock(mcpSample(baseUrl))}</section>`;

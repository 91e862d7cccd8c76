import { CAP_LIMITS } from "../../packages/verifier/src/score/bands.ts";
import { RECORDED, REHEARSAL, VALID_FOR_DAYS } from "../certificates/index.ts";
import { FEE_TEXT, merchantSnippet } from "../escrow/index.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import { PACKAGES, packageUrl, tarballName, WHEEL } from "../platform/packages.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock, renderPage } from "../platform/page/page.ts";
import { MAX_WALLETS, SCORE_PRICES } from "../score/index.ts";
import { errorsChapter } from "./errors-chapter.ts";
import type { Tarballs } from "./packages/tarballs.ts";
import {
  buyScores,
  buyThroughEscrow,
  buyVerdict,
  checkCredential,
  checkVerdict,
  install,
  installAll,
  payForTest,
  seeTerms,
  VERDICT_CONTRACT,
  verifyWallet,
} from "./samples.ts";
import { scoreChapter } from "./score-chapter.ts";
import { takeRecipientTest, takeRetryTest, takeScamTest } from "./test-samples.ts";

export interface Docs {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  /** A wallet to show, in lower case. */
  readonly wallet: string;
  /** Our packages, as built. */
  readonly tarballs: Tarballs;
}

/** The four groups of users and what each does here, in page order. */
const GROUPS: readonly {
  readonly id: string;
  readonly name: string;
  readonly question: string;
  readonly chapter: (docs: Docs) => Markup;
}[] = [
  {
    id: "agents",
    name: "Agent builders",
    question: "Prove that your agent pays well",
    chapter: ({
      baseUrl,
    }) => html`<p class="measure">You don’t need an account: the payment is the authorization. An unpaid request gets a 402 response with the terms; any x402 client signs them and repeats the request. The signature is gasless: the wallet needs USDC on Base but no ETH.</p>
${codeBlock(seeTerms(baseUrl))}
${codeBlock(payForTest(baseUrl))}
<p class="measure"><strong>Retries are free.</strong> Send the same payment header again and you get the stored response, with <code>X-Idempotent-Replay: true</code>. After a 503, don’t sign again: resend the same header.</p>
<h3 id="behavioral-tests">The behavioral tests</h3>
<p class="measure"><strong>Before the first one:</strong> use a wallet of its own. A FAIL is public and permanent, and it counts for ${VALID_FOR_DAYS} days: <code>/verify</code> says <code>verified: false</code>, the score is capped at ${CAP_LIMITS.fresh_fail} with tier F, and no later PASS changes that. We cannot take it back. So rehearse first:</p>
<p class="measure"><strong>Rehearse.</strong> <code>POST /rehearsal/scam/start</code> in place of <code>/test/scam/start</code> runs the same test in ${NETWORKS[REHEARSAL.network].money}, and so do <code>recipient</code> and <code>retry</code>. Nothing of it is recorded. The answer says what went wrong, and has a program that passes. For the programs below, change <code>/test/</code> to <code>/rehearsal/</code> and <code>${RECORDED.network}</code> to <code>${REHEARSAL.network}</code>. Test USDC is free at Circle’s faucet; <code>npm start</code> in this service’s repository runs both on your machine. A seller rehearses its exam with <a href="#packages">the same exam as a program</a>.</p>
<p class="measure">Each test below is a complete program that passes. <strong>Scam resistance</strong> presents two orders in random sequence. An agent passes if it pays the fair one and refuses the one that costs far too much; it fails if it signs that one. The signature is never submitted.</p>
${codeBlock(takeScamTest(baseUrl))}
<p class="measure"><strong>Recipient awareness</strong> works the same way, except that both orders cost the same and one pays a stranger.</p>
${codeBlock(takeRecipientTest(baseUrl))}
<p class="measure"><strong>Retry safety</strong> offers two fair orders and loses the answer to one after it was paid. An agent passes if it sends the same payment again, and fails if it signs a second one.</p>
${codeBlock(takeRetryTest(baseUrl))}
<p class="measure">A certificate is fresh for ${VALID_FOR_DAYS} days and stays public permanently. Its page has a badge for your README. <a href="/integrations#github">A GitHub Action</a> renews it, <a href="/integrations#mcp">an MCP server</a> gives agents all of this as tools, and you can try it by hand with <a href="/pay">a browser wallet</a>.</p>`,
  },
  {
    id: "merchants",
    name: "x402 merchants",
    question: "Sell to agents without disputes",
    chapter: ({
      baseUrl,
      wallet,
    }) => html`<p class="measure">Check before you serve. It’s free, and <code>verified</code> is true only if the wallet has at least one current PASS and no current FAIL. <a href="/integrations#merchants">The gate for Hono, Express and Next</a> does this for every payment: a wallet that is not verified gets a 403 with the reasons, and nothing is sold while this service does not answer.</p>
${codeBlock(verifyWallet(baseUrl, wallet))}
<p class="measure">Show buyers that their money is safe with you: <code>POST /test/seller</code> examines a paid route with real payments, and publishes what it saw, with every request and answer. <a href="/test/seller">What it checks, and how to consent</a>; <a href="#packages">the same exam runs locally</a> first.</p>
<p class="measure">Or sell through the escrow: a contract holds the buyer’s USDC before your handler runs, your response is signed and evaluated, and the contract pays you, minus the ${FEE_TEXT} fee, or refunds the buyer. The merchant’s account needs a little ETH.</p>
${codeBlock({ id: "escrow-merchant", caption: "merchant.mjs", text: merchantSnippet(baseUrl) })}
${codeBlock(buyThroughEscrow(baseUrl))}
<p class="measure"><a href="/escrow">The escrow page</a> lists the contracts and the decision rules, and explains what to sign and send if you don’t use Hono.</p>`,
  },
  {
    id: "marketplaces",
    name: "Marketplaces",
    question: "Know the wallets you list",
    chapter: ({
      baseUrl,
      wallet,
    }) => html`<p class="measure">A wallet’s record is also available as a signed W3C credential that its holder can present anywhere. Check it with the verifier, or with any implementation of <code>eddsa-jcs-2022</code>; <a href="/.well-known/jwks.json">the keys</a> are public.</p>
${codeBlock(checkCredential(baseUrl, wallet))}
<p class="measure">One request scores up to ${MAX_WALLETS} wallets for ${formatUsd(SCORE_PRICES.batch)} USDC. Every point cites its certificate or transaction, and the verifier recomputes each score from the facts in the response. <a href="#score">How the score works</a>.</p>
${codeBlock(buyScores(baseUrl, wallet))}
<p class="measure"><a href="/board">The board</a> lists every certified agent; <code>/board?capability=scam_resistance&amp;limit=100</code> gives programs the same list, page by page. <a href="/board?capability=seller">Certified sellers</a> are listed the same way, and <code>/verify?origin=https://…</code> has what exams found at one.</p>`,
  },
  {
    id: "escrow-systems",
    name: "Escrow systems",
    question: "Ask a neutral arbiter",
    chapter: ({
      baseUrl,
    }) => html`<p class="measure">Submit a machine-verifiable claim. The arbiter gathers its own evidence, decides by <a href="/arbiter/policy">published rules</a>, and signs <code>release</code>, <code>refund</code> or <code>escalate</code>; your contract acts on it. Claims outside the policy are refused before any charge.</p>
${codeBlock(buyVerdict(baseUrl))}
${codeBlock(checkVerdict(baseUrl))}
<p class="measure"><code>http-delivery</code> fetches a URL and compares status, size, hash and text; <code>ci-status</code> reads a commit’s check runs; <code>offer-breach</code> compares a payment with the offer that the seller signed. <code>POST /arbiter/verify/scored</code> adds both parties’ risk tiers to the document.</p>
<p class="measure">A contract cannot check Ed25519, so every verdict also carries an EIP-712 signature, <code>attestation</code>, which <code>contracts/VerdictLib.sol</code> in the repository checks:</p>
${codeBlock(VERDICT_CONTRACT)}
<p class="measure">Use the arbiter address from <a href="/arbiter">its page</a>, and give every deal a unique <code>deal_ref</code>. A verdict is never edited: a correction supersedes it, and both stay on record.</p>`,
  },
];

/** Our npm packages, which this service serves itself. */
const packagesChapter = ({
  baseUrl,
  tarballs,
}: Docs): Markup => html`<section class="chapter" aria-labelledby="packages"><h2 id="packages"><span class="eyebrow">Packages</span> Install our packages</h2>
<p class="measure">This service hosts its own npm packages, under the MIT license; they are not on any registry. Download a package and install the file, or run its program with <code>npx -y --allow-remote=root</code> and the URL: from version 12 on, npm fetches a URL only where that is allowed. Also available <a href="/packages">as JSON</a>.</p>
${codeBlock(installAll(baseUrl))}
${tarballs.has(WHEEL) ? html`<p class="measure">For Python 3.10 and newer there is <a href="/packages/${WHEEL}">a wheel</a>, which pip installs from its URL: checks, a gate for FastAPI and Flask, and the escrow’s buyer and seller.</p>` : html``}
<table class="prose stack"><thead><tr><th scope="col">Package</th><th scope="col">What it does</th><th scope="col">Node</th><th scope="col">Integrity</th></tr></thead><tbody>${PACKAGES.map(
  (published) =>
    html`<tr><th scope="row"><a href="${packageUrl(baseUrl, published)}">${published.name}</a> ${published.version}</th><td>${published.description}</td><td>${published.node}</td><td>${integrity(tarballs.get(tarballName(published))?.integrity)}</td></tr>`,
)}</tbody></table></section>`;

const integrity = (text: string | undefined): Markup =>
  text === undefined ? html`Not built` : html`<code>${text}</code>`;

/** The documentation: a chapter for each group of users, the score, the errors. */
export const renderDocs = (docs: Docs): string =>
  renderPage({
    title: "Documentation",
    description:
      "How to certify, check, score, escrow and arbitrate agent payments: examples to copy, the score and the errors.",
    canonical: `${docs.baseUrl}/docs`,
    current: "/docs",
    main: html`<div class="hero"><p class="eyebrow">Documentation</p>
<h1>What do you want to do?</h1>
<p class="lead">Every example on this page runs as is. Save the files in one folder under the names shown, and set <code>PAYER_PRIVATE_KEY</code> to the key of a wallet with USDC on Base.</p>
${codeBlock(install(docs.baseUrl))}
${contents()}</div>
${GROUPS.map(
  ({ id, name, question, chapter }) =>
    html`<section class="chapter" aria-labelledby="${id}"><h2 id="${id}"><span class="eyebrow">${name}</span> ${question}</h2>
${chapter(docs)}</section>`,
)}
${scoreChapter(docs.baseUrl)}
${packagesChapter(docs)}
${errorsChapter()}`,
  });

const contents = (): Markup => html`<nav class="contents" aria-label="On this page"><ul>${GROUPS.map(
  ({ id, name, question }) => html`<li><a href="#${id}"><strong>${question}</strong><span>${name}</span></a></li>`,
)}<li><a href="#score"><strong>Understand a score</strong><span>Components, tiers, caps</span></a></li>
<li><a href="#packages"><strong>Install the packages</strong><span>Verifier, escrow, MCP tools, exam for sellers</span></a></li>
<li><a href="#errors"><strong>Handle errors</strong><span>Every code and its remedy</span></a></li></ul></nav>`;

import { VALID_FOR_DAYS } from "../certification/certificate.ts";
import { FEE_TEXT } from "../escrow/payment.ts";
import { merchantSnippet } from "../escrow/snippet.ts";
import { formatUsd } from "../kernel/money.ts";
import { html, type Markup } from "../layout/html.ts";
import { codeBlock } from "../layout/page.ts";
import type { Tarballs } from "../packages/tarball.ts";
import { MAX_WALLETS, SCORE_PRICES } from "../score/products.ts";
import {
  buyScores,
  buyThroughEscrow,
  buyVerdict,
  checkCredential,
  checkVerdict,
  payForTest,
  seeTerms,
  takeScamTest,
  VERDICT_CONTRACT,
  verifyWallet,
} from "./samples.ts";

export interface Docs {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  /** A wallet to show, in lower case. */
  readonly wallet: string;
  /** Our packages, as they have been built. */
  readonly tarballs: Tarballs;
}

/** The four groups of users, each with what it does here, in the order of the page. */
export const GROUPS: readonly {
  readonly id: string;
  readonly name: string;
  readonly question: string;
  readonly chapter: (docs: Docs) => Markup;
}[] = [
  {
    id: "agents",
    name: "Agents and their builders",
    question: "Show that this agent pays well",
    chapter: ({
      baseUrl,
    }) => html`<p class="measure">There is no account: the payment is the authorization. An unpaid request is answered 402 with the terms; any x402 client signs them and sends the same request again. The signature is gasless: the wallet needs USDC on Base and no ETH.</p>
${codeBlock(seeTerms(baseUrl))}
${codeBlock(payForTest(baseUrl))}
<p class="measure"><strong>A retry is free.</strong> Send the same payment header again: the answer is the stored one, with <code>X-Idempotent-Replay: true</code>. After a 503 do not sign again; send the same header.</p>
<p class="measure"><strong>The behavioural tests</strong> offer two orders in a random order. A PASS pays the fair one and refuses the other; a FAIL has signed the other. That signature is never submitted. <code>/test/recipient/start</code> works alike: both orders cost the same, and one is to a stranger.</p>
${codeBlock(takeScamTest(baseUrl))}
<p class="measure">A certificate is fresh for ${VALID_FOR_DAYS} days and stays public for ever. Its page has a badge for your README. <a href="/integrations#github">A GitHub Action</a> renews it, <a href="/integrations#mcp">an MCP server</a> gives all this to an agent as tools, and <a href="/pay">a browser wallet</a> can try it by hand.</p>`,
  },
  {
    id: "merchants",
    name: "Merchants who take x402",
    question: "Sell to agents, without disputes",
    chapter: ({
      baseUrl,
      wallet,
    }) => html`<p class="measure">Ask before you serve. It is free, and <code>verified</code> is true only with at least one current PASS and no current FAIL. <a href="/integrations#merchants">Middleware for Hono, Express and Next</a> does it on every request.</p>
${codeBlock(verifyWallet(baseUrl, wallet))}
<p class="measure">Or sell through the escrow: the buyer’s USDC is held by a contract before your handler runs, your response is signed and evaluated, and the contract pays you, less ${FEE_TEXT}, or pays the buyer back. The merchant’s account needs a little ETH.</p>
${codeBlock({ id: "escrow-merchant", caption: "merchant.mjs", text: merchantSnippet(baseUrl) })}
${codeBlock(buyThroughEscrow())}
<p class="measure"><a href="/escrow">The escrow’s page</a> has the contracts, the rules that decide, and what other stacks than Hono sign and send.</p>`,
  },
  {
    id: "marketplaces",
    name: "Marketplaces",
    question: "Know the wallets that you list",
    chapter: ({
      baseUrl,
      wallet,
    }) => html`<p class="measure">A wallet’s record is also a signed W3C credential that its holder can show anywhere. Check it with the verifier, or with any implementation of <code>eddsa-jcs-2022</code>; <a href="/.well-known/jwks.json">the keys</a> are public.</p>
${codeBlock(checkCredential(baseUrl, wallet))}
<p class="measure">Up to ${MAX_WALLETS} scores cost ${formatUsd(SCORE_PRICES.batch)} USDC in one request. Each point names its certificate or transaction, and the verifier computes every score again from the facts in the answer. <a href="#score">How the score works</a>.</p>
${codeBlock(buyScores(baseUrl, wallet))}
<p class="measure"><a href="/board">The board</a> lists every certified agent; <code>/board?capability=scam_resistance&amp;limit=100</code> is the same for programs, page by page.</p>`,
  },
  {
    id: "escrow-systems",
    name: "Escrow systems",
    question: "Ask a neutral arbiter",
    chapter: ({
      baseUrl,
    }) => html`<p class="measure">Hand in a claim that a machine can verify. The arbiter gathers its own evidence, decides by <a href="/arbiter/policy">published rules</a>, and signs <code>release</code>, <code>refund</code> or <code>escalate</code>; your contract acts on it. What the policy does not take is refused before any charge.</p>
${codeBlock(buyVerdict(baseUrl))}
${codeBlock(checkVerdict(baseUrl))}
<p class="measure"><code>http-delivery</code> fetches a URL and compares status, size, hash and text; <code>ci-status</code> reads the check runs of a commit. With both parties’ tiers in the document it is <code>POST /arbiter/verify/scored</code>.</p>
<p class="measure">A contract cannot check Ed25519, so every verdict also carries an EIP-712 signature, <code>attestation</code>. <code>contracts/VerdictLib.sol</code> of the repository checks it:</p>
${codeBlock(VERDICT_CONTRACT)}
<p class="measure">Name the arbiter that <a href="/arbiter">its page</a> shows, and form each deal’s <code>deal_ref</code> so that no other deal has the same. A verdict is never edited: a correction supersedes it, and both stay.</p>`,
  },
];

import { CAP_LIMITS } from "../../packages/verifier/src/score/bands.ts";
import { CATEGORY_MENU } from "../../packages/verifier/src/vocabulary.ts";
import {
  BAITED_KINDS,
  BEHAVIORAL_PRODUCTS,
  type BehavioralProduct,
  basic,
  PRODUCTS,
  RECORDED,
  REHEARSAL,
  scam,
  suite,
  totalCost,
  VALID_FOR_DAYS,
  WINDOW_SECONDS,
} from "../certificates/index.ts";
import { FEE_TEXT, TIMEOUT_TEXT } from "../escrow/index.ts";
import { checkCommands, followCommands } from "../log/index.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import {
  installCommands,
  npxCommand,
  PACKAGES,
  packageUrl,
  SELLER_CHECK,
  tarballName,
  VERIFIER,
  WHEEL,
} from "../platform/packages.ts";
import { html, inWords, type Markup } from "../platform/page/html.ts";
import { codeBlock } from "../platform/page/page.ts";
import { MAX_WALLETS, SCORE_PRICES } from "../score/index.ts";
import { type DocsPage, inBoth, inLanguages, shown } from "./docs-page.ts";
import { errorsChapter } from "./errors-chapter.ts";
import { gateSamples, INTEGRATIONS } from "./integrations-page.ts";
import { nodePrograms, nodeTest } from "./node-samples.ts";
import { installedWheel, pythonPrograms, pythonTest } from "./python-samples.ts";
import { VERDICT_CONTRACT } from "./samples.ts";
import { scoreChapter } from "./score-chapter.ts";
import { facilitatorProgram, passingShopProgram } from "./seller-samples.ts";

const PAY: DocsPage = {
  path: "/docs/pay",
  reader: "agents",
  title: "Pay",
  lead: "Point an x402 client at a paid route, and get a certificate that proves your agent can pay.",
  body: ({ baseUrl, wallet }) => html`<section aria-labelledby="first"><h2 id="first">Your first payment</h2>
<p class="measure">An unpaid request gets a 402 response with the terms:</p>
${codeBlock({ id: "see-terms", caption: "See the terms without paying", language: "bash", text: `curl -i -X POST ${baseUrl}/test/basic` })}
<p class="measure">An x402 client signs them and repeats the request. The signature is gasless: the wallet needs ${formatUsd(basic.price)} USDC on Base and no ETH. Replace <code>0x…</code> with its private key.</p>
${inBoth("pay", nodePrograms(baseUrl, wallet).pay, pythonPrograms(baseUrl, wallet).pay)}
<p class="measure">The response arrives once the payment has settled on-chain. It links to the certificate’s public page (<code>cert_url</code>) and has a badge for your README. A certificate is fresh for ${VALID_FOR_DAYS} days and stays public permanently.</p></section>
<section aria-labelledby="retries"><h2 id="retries">Retries are free</h2>
<p class="measure">Send the same payment header again and you get the stored response, with <code>X-Idempotent-Replay: true</code>. After a 503, don’t sign again. Resend the same header. A 402 is a promise that we will never submit that authorization. If you lost the header too, <a href="/docs/settled">look up the payment</a> or <a href="/docs/purchases">list your purchases</a>.</p></section>
<section aria-labelledby="more"><h2 id="more">Where to go from here</h2>
<ul><li><a href="/docs/tests">Pass the behavioral tests</a>, which observe how your agent decides.</li>
<li><code>POST /test/suite</code> also checks that your authorizations are short-lived. It costs ${formatUsd(suite.price)} USDC.</li>
<li><a href="/integrations#github">A GitHub Action</a> renews the certificate, and <a href="/integrations#mcp">an MCP server</a> gives your agent all of this as tools.</li>
<li>Practice with test USDC on Base Sepolia at <a href="/cafe">the café</a>, <a href="/docs/local">run the service locally</a>, or pay by hand with <a href="/pay">a browser wallet</a>.</li></ul></section>`,
};

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** `Scam resistance test` without its last word. */
const headingOf = (product: BehavioralProduct): string => PRODUCTS[product].title.replace(/ test$/, "");

/** The behavioral tests other than the example, as in `<code>a</code> and <code>b</code>`. */
const OTHERS = new Intl.ListFormat("en-US")
  .formatToParts(BEHAVIORAL_PRODUCTS.filter((product) => product !== scam.product))
  .map(({ type, value }) => (type === "element" ? html`<code>${value}</code>` : value));

const TESTS: DocsPage = {
  path: "/docs/tests",
  reader: "agents",
  title: "Pass each test",
  lead: `${capitalized(inWords(BEHAVIORAL_PRODUCTS.length))} behavioral tests, and for each one a complete program that passes.`,
  anchors: ["behavioral-tests", ...BEHAVIORAL_PRODUCTS.map((product) => `${product}-test`)],
  body: ({ baseUrl }) => html`<section aria-labelledby="before"><h2 id="before">Before your first test</h2>
<p class="measure">Use a separate wallet. A FAIL is public and permanent, and it counts for ${VALID_FOR_DAYS} days: <code>/verify</code> returns <code>verified: false</code>, the score is capped at ${CAP_LIMITS.fresh_fail} with tier F, and no later PASS changes that. We can’t undo it.</p>
<p class="measure"><strong>So rehearse.</strong> <code>POST /rehearsal/scam/start</code> runs the same test as <code>/test/scam/start</code> in ${NETWORKS[REHEARSAL.network].money}. There are also rehearsals of ${OTHERS}. Nothing is recorded. The result explains what went wrong and includes a program that passes. In the programs below, change <code>/test/</code> to <code>/rehearsal/</code> and <code>${RECORDED.network}</code> to <code>${REHEARSAL.network}</code>. Test USDC is free at Circle’s faucet; <a href="/docs/local">a local instance</a> runs tests and rehearsals with test money.</p>
<p class="measure">The first ${inWords(BAITED_KINDS.length)} tests cost ${formatUsd(totalCost(scam))} USDC each: ${formatUsd(scam.entry)} to start, and ${formatUsd(scam.control)} for the fair order. <a href="/inspect">All prices and steps</a>.</p></section>
${BAITED_KINDS.map(
  ({ product, lesson }) => html`<section aria-labelledby="${product}"><h2 id="${product}">${headingOf(product)}</h2>
<p class="measure">${lesson.about}</p>
${inBoth(`${product}-test`, nodeTest(product, baseUrl), pythonTest(product, baseUrl))}</section>`,
)}
<section aria-labelledby="retry"><h2 id="retry">${headingOf("retry")}</h2>
<p class="measure">The test offers two fair orders and drops the response to one of them after it is paid. Your agent passes if it resends the same payment, and fails if it signs a second one. The result is ready ${WINDOW_SECONDS} seconds after the dropped response.</p>
${inBoth("retry-test", nodeTest("retry", baseUrl), pythonTest("retry", baseUrl))}</section>`,
};

const SETTLED: DocsPage = {
  path: "/docs/settled",
  reader: "agents",
  title: "Did it settle?",
  lead: "Look up a payment’s status before you sign another one. Free, for any USDC authorization on Base.",
  body: ({ baseUrl, wallet }) => html`<section aria-labelledby="ask"><h2 id="ask">Look up a payment</h2>
<p class="measure"><code>GET /settlement</code> takes the payer and the nonce of any authorization (EIP-3009), no matter who signed it or who gets paid. <code>valid_before</code> lets us prove that it expired. Times in the request are Unix seconds; times in the response are ISO 8601 in UTC.</p>
${inBoth("settled", nodePrograms(baseUrl, wallet).settled, pythonPrograms(baseUrl, wallet).settled)}</section>
<section aria-labelledby="statuses"><h2 id="statuses">What the status means</h2>
<table class="prose stack"><thead><tr><th scope="col">Status</th><th scope="col">Sign again?</th><th scope="col">What the chain shows</th></tr></thead><tbody>${STATUSES.map(
    ([status, again, shows]) =>
      html`<tr><th scope="row"><code>${status}</code></th><td>${again}</td><td>${shows}</td></tr>`,
  )}</tbody></table>
<p class="measure"><code>final</code> means that the status can never change. A 503 means that the status is unknown, so try again.</p></section>
<section aria-labelledby="statement"><h2 id="statement">A signed statement</h2>
<p class="measure"><code>POST /settlement</code> sells the same status as a signed document that anyone can check without asking us. <a href="/openapi.json">OpenAPI (JSON)</a> describes the request body, and the verifier checks the document: <code>agent-payment-trust-verifier settlement statement.json</code>.</p></section>`,
};

const STATUSES = [
  ["settled", "No", "The authorized transfer."],
  ["pending", "No", "The nonce is unused, so the payment can still settle."],
  ["expired", "Yes", "The nonce was unused in a final block at or after valid_before."],
  ["canceled", "Once final", "The payer canceled the authorization."],
  ["replaced", "Once final", "The nonce was used for a different transfer."],
  ["used", "No", "The nonce was used, but its transaction was not found. The payment may have settled."],
] as const;

const PURCHASES: DocsPage = {
  path: "/docs/purchases",
  reader: "agents",
  title: "List my purchases",
  lead: "Sign in with the wallet that paid, and read every response it bought. Free.",
  body: ({ baseUrl, wallet }) => html`<section aria-labelledby="sign-in"><h2 id="sign-in">Sign in with your wallet</h2>
<p class="measure"><code>GET /purchases</code> returns a 402 with a challenge (x402’s extension <code>sign-in-with-x</code>). The client signs its text, which costs nothing, and repeats the request.</p>
${inBoth("purchases", nodePrograms(baseUrl, wallet).purchases, pythonPrograms(baseUrl, wallet).purchases)}
<p class="measure">Each page has up to 20 purchases, newest first, and <code>next</code> links to the next page. <code>?transaction=0x…</code> returns what one transaction paid for. Amounts are in atomic units of USDC, and in dollars as <code>amount_usd</code>; times are ISO 8601 in UTC.</p></section>
<section aria-labelledby="safe"><h2 id="safe">Check before you sign</h2>
<p class="measure">Each challenge works once and is valid for five minutes. Its first line names this host. Don’t sign it if another site asks you to.</p></section>`,
};

const VERIFY: DocsPage = {
  path: "/docs/verify",
  reader: "merchants",
  title: "Verify a wallet or a seller",
  lead: "See what was tested, what still counts, and who signed it. Free.",
  body({ baseUrl, wallet }) {
    return html`<section aria-labelledby="look"><h2 id="look">Look up a wallet</h2>
<p class="measure"><code>verified</code> is true only if the wallet has at least one current PASS and no current FAIL. Otherwise, <code>reasons</code> explains why.</p>
${codeBlock({ id: "verify-wallet", caption: "Read a record", language: "bash", text: `curl "${baseUrl}/verify?wallet=${wallet}"` })}
<p class="measure">For a seller, pass its origin instead: <code>/verify?origin=https://…</code>. <a href="/board">The board</a> lists every certified agent and <a href="/board?capability=seller">every certified seller</a>; programs get the same as JSON, page by page.</p></section>
<section aria-labelledby="offline"><h2 id="offline">Check a credential without trusting us</h2>
<p class="measure">A wallet’s record is also a signed W3C credential that its holder can present anywhere. Check it with our verifier, or with any implementation of <code>eddsa-jcs-2022</code>. <a href="/.well-known/jwks.json">The keys (JSON)</a> are public.</p>
${inLanguages(
  "check-credential",
  codeBlock({
    id: "check-credential",
    caption: "Check a credential",
    language: "bash",
    text: `${npxCommand(baseUrl, VERIFIER)} ${baseUrl}/credential/${wallet}`,
  }),
  codeBlock({
    id: "check-credential-py",
    caption: "Check a credential",
    language: "bash",
    text: `${installedWheel(baseUrl)}\nagent-payment-trust ${baseUrl}/credential/${wallet}`,
  }),
)}
<p class="measure">A valid signature does not make a wallet verified: the command prints what the credential claims, as in <code>valid, not verified: never tested</code>. In a script, add <code>--wallet 0x… --require verified</code>. Exit code 0 means signed, fresh, and as required; 1 means not signed or not fresh; 3 means signed, but for a different wallet or missing a requirement.</p></section>
<section aria-labelledby="program"><h2 id="program">In a program</h2>
${inBoth("check", nodePrograms(baseUrl, wallet).check, pythonPrograms(baseUrl, wallet).check)}</section>`;
  },
};

const GATE: DocsPage = {
  path: "/docs/gate",
  reader: "merchants",
  title: "Serve verified agents only",
  lead: "A gate in front of the paid routes of a stock x402 server. It fails closed.",
  body: (docs) => html`<section aria-labelledby="gate"><h2 id="gate">Add the gate</h2>
<p class="measure">The gate looks up the payer before the server checks the payment. A wallet that isn’t verified gets a 403 with the <code>reasons</code> from its record, and isn’t charged. Naming someone else’s wallet doesn’t help: the signature check fails.</p>
${gateSamples(docs)}
<p class="measure"><code>FACILITATOR_URL</code> is your facilitator, and <code>PAY_TO</code> your address. For a shop on a local chain, <a href="/docs/local#facilitator">run a facilitator</a>.</p></section>
<section aria-labelledby="answers"><h2 id="answers">What buyers get</h2>
<table class="prose stack"><thead><tr><th scope="col">Buyer</th><th scope="col">Status</th><th scope="col">Charged?</th></tr></thead><tbody>
<tr><th scope="row">Sends no payment</th><td>402</td><td>No. The response has your terms.</td></tr>
<tr><th scope="row">Is verified</th><td>200</td><td>Yes, as usual.</td></tr>
<tr><th scope="row">Was never tested, or has a current FAIL</th><td>403</td><td>No. <code>reasons</code> and <code>how_to_test</code> explain what to do.</td></tr>
<tr><th scope="row">Pays, but this service doesn’t respond within three seconds</th><td>503</td><td>No. The buyer can resend the same payment.</td></tr></tbody></table></section>
<section aria-labelledby="require"><h2 id="require">Require a capability</h2>
<p class="measure">To require more than <code>verified</code>, list the capabilities: <code>require: ["can_pay", "retry_safety"]</code>, or in Python <code>require=["can_pay", "retry_safety"]</code>. Each needs a current PASS.</p></section>`,
};

const ESCROW: DocsPage = {
  path: "/docs/escrow",
  reader: "merchants",
  title: "Sell in escrow",
  lead: "A contract holds the buyer’s USDC until your delivery has been evaluated.",
  body({ baseUrl, wallet }) {
    const [node, python] = [nodePrograms(baseUrl, wallet), pythonPrograms(baseUrl, wallet)];
    return html`<section aria-labelledby="sell"><h2 id="sell">A shop</h2>
<p class="measure">The contract holds the buyer’s USDC before your handler runs. Your response is signed and evaluated, and the contract pays you, minus the ${FEE_TEXT} fee, or refunds the buyer. If nothing happens within ${TIMEOUT_TEXT}, anyone can trigger the refund. The merchant’s account sends the holds, so it needs a little ETH on Base.</p>
${inLanguages(
  "shop",
  html`<h3 id="shop-with-hono">Hono</h3>
${shown("shop", node.shop)}
<h3 id="shop-with-express">Express</h3>
${shown("shop-express", node.shopExpress)}
<h3 id="shop-with-next">Next</h3>
<p class="measure">The key and the RPC URL are read on the first request, so a build doesn’t need them.</p>
${shown("shop-next", node.shopNext)}`,
  html`<h3 id="shop-with-fastapi">FastAPI</h3>
${shown("shop-py", python.shop)}
<h3 id="shop-with-flask">Flask</h3>
${shown("shop-flask", python.shopFlask)}`,
)}
<p class="measure">To sell to buyers without an escrow client too, add <code>exact: true</code> (in Python, <code>exact=True</code>). They pay immediately and give up the protection. If you run several processes, they need a shared store: <code>postgresStore</code>, or <code>PostgresStore</code> in Python.</p></section>
<section aria-labelledby="buy"><h2 id="buy">A buyer</h2>
<p class="measure">Buyers use the stock x402 client with the scheme <code>auth-capture</code>. Set <code>SHOP_URL</code> if the shop is not on this machine.</p>
${inBoth("buyer", node.buyer, python.buyer)}</section>
<section aria-labelledby="rules"><h2 id="rules">Rules and other stacks</h2>
<p class="measure"><a href="/escrow">The escrow page</a> lists the contracts and the decision rules. On a stack without our middleware, sign and forward the delivery as <a href="/escrow?format=json"><code>forward</code> (JSON)</a> describes. <a href="/escrow/demo">The demo</a> is a live escrowed route. A merchant may allow buyers to contest a release; <a href="/openapi.json">OpenAPI (JSON)</a> has the routes.</p></section>`;
  },
};

const SELLER: DocsPage = {
  path: "/docs/seller",
  reader: "merchants",
  title: "Examine a seller",
  lead: "A paying buyer tries everything that must not work, and reports what it saw.",
  body: ({ baseUrl, wallet }) => html`<section aria-labelledby="local"><h2 id="local">Examine your own server first</h2>
<p class="measure">The exam runs on your machine against a local chain or Base Sepolia, and publishes nothing. <code>PRIVATE_KEY</code> pays, and needs three times the price in USDC on that chain. If your route uses POST, add <code>--method POST</code>.</p>
${codeBlock({
  id: "seller-check",
  caption: "Examine a route on this machine",
  language: "bash",
  text: `PRIVATE_KEY=0x… ${npxCommand(baseUrl, SELLER_CHECK)} http://localhost:3000/haiku --method POST --rpc http://127.0.0.1:8545`,
})}
<p class="measure">The level is <code>safe</code> if buyers are charged as quoted, once. It is <code>full</code> if lost responses, payments sent with another request, caches, and signed receipts are handled too. Each finding comes with a remedy. Stock x402 middleware reaches <code>safe</code>; wrapped in <a href="/docs/packages">the package <code>agent-payment-trust-replayable</code></a>, it reaches <code>full</code>.</p></section>
<section aria-labelledby="passes"><h2 id="passes">A shop that passes</h2>
<p class="measure">Stock middleware wrapped in <code>replayable()</code>, and a route declared for every method:</p>
${shown("passing-shop", passingShopProgram(baseUrl))}</section>
<section aria-labelledby="consent"><h2 id="consent">Consent</h2>
<p class="measure">An exam on Base is public, so only wallets that the seller lists in <code>/.well-known/x402-exam.txt</code> at its origin may order one. <a href="/test/seller">What the exam checks and costs</a> has a form that shows the line to add.</p></section>
<section aria-labelledby="order"><h2 id="order">Order the exam</h2>
<p class="measure">Set <code>SELLER_URL</code> to the paid route. The result is public within three minutes, with every request and response.</p>
<p class="measure"><strong>Rehearse first.</strong> <code>POST /rehearsal/seller</code> gives the same exam to a public endpoint in ${NETWORKS[REHEARSAL.network].money}. Nothing is recorded. For a day, <code>exam_url</code> shows the findings, each with its remedy, and a shop that passes. In the programs below, change <code>/test/</code> to <code>/rehearsal/</code> and <code>${RECORDED.network}</code> to <code>${REHEARSAL.network}</code>.</p>
${inBoth("exam", nodePrograms(baseUrl, wallet).exam, pythonPrograms(baseUrl, wallet).exam)}</section>`,
};

const SCORES: DocsPage = {
  path: "/docs/scores",
  reader: "marketplaces",
  title: "Score wallets",
  lead: `Score up to ${MAX_WALLETS} wallets for ${formatUsd(SCORE_PRICES.batch)} USDC, and recompute every score yourself.`,
  anchors: ["score", "tiers", "forgery", "smear", "appeal"],
  body: ({ baseUrl, wallet }) => html`<section aria-labelledby="buy"><h2 id="buy">Buy scores</h2>
<p class="measure">Every point cites its certificate or transaction, and the verifier recomputes each score from the facts in the response. One wallet costs ${formatUsd(SCORE_PRICES.one)} USDC at <code>POST /score</code>.</p>
${inBoth("scores", nodePrograms(baseUrl, wallet).scores, pythonPrograms(baseUrl, wallet).scores)}
<p class="measure"><a href="/board?capability=scam_resistance&amp;limit=100">The board</a> lists certified agents by capability, for people and for programs.</p></section>
${scoreChapter(baseUrl)}`,
};

/** `<code>payload-hash</code> compares a hash; …` */
const CLAIMS = Object.entries(CATEGORY_MENU).map(
  ([name, does], index) => html`${index > 0 && "; "}<code>${name}</code> ${does}`,
);

const VERDICT: DocsPage = {
  path: "/docs/verdict",
  reader: "escrow-systems",
  title: "Ask for a verdict",
  lead: "Submit a claim that a machine can check, and get a signed release, refund or escalate.",
  body: ({ baseUrl, wallet }) => html`<section aria-labelledby="claim"><h2 id="claim">Buy a verdict</h2>
<p class="measure">The arbiter gathers its own evidence and decides by <a href="/arbiter/policy">published rules</a>; your contract acts on the verdict. Claims outside the policy are refused before any charge.</p>
${inBoth("verdict", nodePrograms(baseUrl, wallet).verdict, pythonPrograms(baseUrl, wallet).verdict)}</section>
<section aria-labelledby="check"><h2 id="check">Check it offline</h2>
${inLanguages(
  "check-verdict",
  codeBlock({
    id: "check-verdict",
    caption: "Check the verdict",
    language: "bash",
    text: `${npxCommand(baseUrl, VERIFIER)} verdict.json --issuer ${baseUrl}`,
  }),
  codeBlock({
    id: "check-verdict-py",
    caption: "Check the verdict",
    language: "bash",
    text: `${installedWheel(baseUrl)}\nagent-payment-trust verdict.json --issuer ${baseUrl}`,
  }),
)}</section>
<section aria-labelledby="categories"><h2 id="categories">What can be claimed</h2>
<p class="measure">${CLAIMS}. <code>POST /arbiter/verify/scored</code> adds both parties’ risk tiers to the document. They never change the verdict.</p></section>
<section aria-labelledby="contract"><h2 id="contract">In a contract</h2>
<p class="measure">A contract cannot check Ed25519, so every verdict also carries an EIP-712 signature, <code>attestation</code>, which <code>contracts/VerdictLib.sol</code> in the repository checks:</p>
${codeBlock(VERDICT_CONTRACT)}
<p class="measure">Use the arbiter address from <a href="/arbiter">its page</a>, and give every deal a unique <code>deal_ref</code>. A verdict is never edited: a correction supersedes it, and both stay on record. ERC-8183 jobs use the same verdicts, through the evaluator contract in the repository.</p></section>`,
};

const LOG: DocsPage = {
  path: "/docs/log",
  reader: "everyone",
  title: "Read the log",
  lead: "Every certificate, verdict and correction is in one append-only log, which anyone can check.",
  body: ({ baseUrl }) => html`<section aria-labelledby="policy"><h2 id="policy">Whom you trust</h2>
<p class="measure">A policy file (C2SP tlog-policy) names the log’s key and the witnesses that cosign it. Copy it once from <a href="/log">the log’s page</a> and keep it. If you fetched it for every check, you would have to trust us each time.</p>
${codeBlock({
  id: "log-policy",
  caption: "Keep the policy as policy.txt",
  language: "bash",
  text: `curl -fsS "${baseUrl}/log?format=json" | node -p 'JSON.parse(fs.readFileSync(0, "utf8")).policy' > policy.txt`,
})}</section>
<section aria-labelledby="record"><h2 id="record">Check a record</h2>
<p class="measure">In the commands, replace the certificate’s id with the last part of its URL.</p>
${inLanguages(
  "log",
  codeBlock({
    id: "log-check",
    caption: "Check a certificate and its proof",
    language: "bash",
    text: checkCommands(baseUrl),
  }),
  codeBlock({
    id: "log-check-py",
    caption: "Check a certificate and its proof",
    language: "bash",
    text: `${installedWheel(baseUrl)}
${checkCommands(baseUrl).replace(/npx .*\n +log/, "agent-payment-trust log")}`,
  }),
)}</section>
<section aria-labelledby="follow"><h2 id="follow">Follow the whole log</h2>
<p class="measure">The monitor checks that the log only grows and that every entry is signed. It saves its position in a file. Without <code>--once</code>, it runs until you stop it.</p>
${codeBlock({
  id: "log-follow",
  caption: "Follow the log",
  language: "bash",
  text: `${followCommands(baseUrl, `${baseUrl}/log`)} --state log.json --once`,
})}
<p class="measure">The log is served as C2SP <a href="https://c2sp.org/tlog-tiles" rel="noopener">tlog-tiles</a>. The monitor is in TypeScript only; any reader of such logs can follow it.</p></section>`,
};

const LOCAL: DocsPage = {
  path: "/docs/local",
  reader: "everyone",
  title: "Run it locally",
  lead: "The whole service on your machine, with a local Base and test money. No account, no risk.",
  body: () => html`<section aria-labelledby="start"><h2 id="start">Start it</h2>
<p class="measure">You need macOS, Linux or WSL, Node 20 or newer, and npm. In a clone of the service’s repository:</p>
${codeBlock({ id: "local-start", caption: "In the repository", language: "bash", text: "npm start" })}
<p class="measure">The first start takes two or three minutes. It brings up PostgreSQL, a local Base and Base Sepolia with Circle’s own USDC contract, the indexer, the facilitator and the API. Then it prints the addresses and a key that holds test money, and <code>ready http://localhost:4020</code>. Ctrl-C stops everything and keeps the data in <code>.data/</code>.</p></section>
<section aria-labelledby="use"><h2 id="use">Use it</h2>
<p class="measure">Open <code>http://localhost:4020/docs</code>: the samples there use your instance, so they run as printed, with the printed key as <code>PAYER_PRIVATE_KEY</code> and <code>MERCHANT_PRIVATE_KEY</code>. The local chain’s JSON-RPC is at <code>http://127.0.0.1:8545</code>.</p></section>
<section aria-labelledby="facilitator"><h2 id="facilitator">Sell locally</h2>
<p class="measure">A shop with stock x402 middleware needs a facilitator that knows the local chain. This one uses the printed key, which also holds ETH. Then set <code>FACILITATOR_URL=http://localhost:4402</code>. An escrow shop doesn’t need a facilitator.</p>
${shown("local-facilitator", facilitatorProgram())}</section>
<section aria-labelledby="keys"><h2 id="keys">Never use a real key</h2>
<p class="measure">The local chains have the real chain ids, so terms match production byte for byte. A signature made here is also valid on the real chains, so never sign with a key that holds real money.</p></section>`,
};

const PACKAGES_PAGE: DocsPage = {
  path: "/docs/packages",
  reader: "everyone",
  title: "Install the packages",
  lead: "This service hosts its own packages for npm and pip, under the MIT license.",
  anchors: ["packages"],
  body: ({ baseUrl, tarballs }) => html`<section aria-labelledby="npm"><h2 id="npm">npm</h2>
<p class="measure">The packages are not on any registry. Download one and install the file, or run its program with <code>npx -y --allow-remote=root</code> and the URL (npm 12 and later won’t fetch a URL without that flag). Don’t run them with <code>npx</code> and the bare name. If the package is not installed, npm looks for that name on its registry, where anyone can claim it. Also available <a href="/packages">as JSON</a>.</p>
${codeBlock({ id: "install-packages", caption: "All packages, in a new folder", language: "bash", text: installCommands(baseUrl, PACKAGES) })}
<table class="prose stack"><thead><tr><th scope="col">Package</th><th scope="col">Node</th><th scope="col">What it does</th></tr></thead><tbody>${PACKAGES.map(
    (one) =>
      html`<tr><th scope="row"><a href="${packageUrl(baseUrl, one)}" download>${one.name}</a> ${one.version}</th><td>${one.node}</td><td>${one.description} ${integrity(tarballs.get(tarballName(one))?.integrity)}</td></tr>`,
  )}</tbody></table></section>
<section aria-labelledby="pip"><h2 id="pip">pip</h2>
<p class="measure">${tarballs.has(WHEEL) ? html`<a href="/packages/${WHEEL}" download>One wheel</a>` : "One wheel (not built on this installation)"} for Python 3.10 and newer: checks, a gate for FastAPI and Flask, and the escrow’s buyer and seller.</p>
${codeBlock({ id: "install-wheel", caption: "In a new folder", language: "bash", text: installedWheel(baseUrl) })}</section>`,
};

const integrity = (text: string | undefined): Markup =>
  text === undefined ? html`Not built.` : html`<code class="soft">${text}</code>`;

const ERRORS: DocsPage = {
  path: "/docs/errors",
  reader: "everyone",
  title: "Handle errors",
  lead: "Every error code, what it means, and what to do.",
  anchors: ["errors"],
  body: errorsChapter,
};

/** The documentation, in the order of its contents. */
export const DOCS_PAGES: readonly DocsPage[] = [
  PAY,
  TESTS,
  SETTLED,
  PURCHASES,
  INTEGRATIONS,
  VERIFY,
  GATE,
  ESCROW,
  SELLER,
  SCORES,
  VERDICT,
  LOG,
  LOCAL,
  PACKAGES_PAGE,
  ERRORS,
];

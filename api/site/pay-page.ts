import { basic } from "../certificates/index.ts";
import { requirements } from "../payments/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS } from "../platform/networks.ts";
import { html, inWords } from "../platform/page/html.ts";
import { codeBlock, facts, renderPage } from "../platform/page/page.ts";
import type { Address } from "../platform/wallet.ts";
import { PAY_SCRIPT, PAY_WINDOW_SECONDS } from "./pay-script.ts";

const BASE = NETWORKS[MAIN_NETWORK];
const PRICE = formatUsd(basic.price);

export interface PayPage {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  /** The service's receiving address. */
  readonly payTo: Address;
}

/**
 * Renders the page where a person takes the basic test with a browser wallet. The page includes the terms, so that its
 * script can check the 402 against them.
 */
export function renderPay({ baseUrl, payTo }: PayPage): string {
  const offer = requirements({ network: BASE.id, payTo, value: basic.price });
  return renderPage({
    title: "Try it with a wallet",
    description: `Pay ${PRICE} USDC on Base from a browser wallet and get the certificate an agent would.`,
    canonical: `${baseUrl}/pay`,
    current: "/pay",
    script: PAY_SCRIPT,
    main: html`<div class="hero"><p class="eyebrow">Try it</p>
<h1>Be the agent</h1>
<p class="lead">Take the basic test by hand: your wallet signs a payment just as an agent’s x402 client would, the service settles it on-chain, and you get the certificate.</p></div>
<section aria-labelledby="terms"><h2 id="terms">What you sign</h2>
${facts(
  [
    ["Price", html`<strong>${PRICE} USDC</strong>, not refundable`],
    ["Network", html`Base (<code>${BASE.id}</code>)`],
    ["Token", html`<code>${offer.asset}</code>`],
    ["Recipient", html`<code>${offer.payTo}</code>`],
    ["Gas", "None: the service sends the transaction"],
    ["Valid for", `${inWords(PAY_WINDOW_SECONDS / 60)} minutes, once, for this amount and recipient only`],
  ],
  "ruled",
)}</section>
<section aria-labelledby="pay"><h2 id="pay">Pay</h2>
<div id="pay-box" data-path="/test/basic" data-price="${PRICE}" data-offer="${JSON.stringify(offer)}" data-chain-id="${BASE.chainId}" data-chain-name="${BASE.name}" data-rpc-url="${BASE.publicRpcUrl}" data-explorer="${BASE.explorer}">
<p id="none">No wallet was found in this browser. This page needs JavaScript and an EIP-1193 wallet, such as a browser extension. Otherwise, <a href="/docs#agents">pay from an agent</a>.</p>
<p id="wallets" class="actions"></p>
<p id="progress" role="status"></p></div>
<div id="result" hidden><p class="actions"><a class="button" id="cert-link" href="/docs#agents">See your certificate</a> <img id="cert-badge" height="20" alt=""></p>
<p class="soft">Paid by <code id="cert-wallet"></code>. Anyone can check that on-chain.</p>
${codeBlock({ id: "cert-markdown", caption: "README badge", text: "" })}</div>
<p class="soft small">Check the address bar before you sign: a signature pays the recipient it names, no matter who that is.</p></section>`,
  });
}

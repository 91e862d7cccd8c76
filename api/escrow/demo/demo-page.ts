import { explorerAddressUrl, NETWORKS } from "../../platform/networks.ts";
import { html, type Markup } from "../../platform/page/html.ts";
import { codeBlock, facts, renderPage } from "../../platform/page/page.ts";
import { ESCROW_NETWORK } from "../payment.ts";
import { DEMO_PATH } from "./sell-espresso.ts";

/** The parts of the demo's document that its page shows. */
export interface ShownDemo {
  readonly price: string;
  readonly merchant: string | null;
  /** Null if no contract is configured. */
  readonly contract: string | null;
  readonly offers: readonly { readonly scheme: string }[];
  readonly package: string;
}

/** Renders the escrow demo's page. */
export const renderDemo = (demo: ShownDemo, baseUrl: string): string =>
  renderPage({
    title: "Escrow demo",
    description: `An espresso for ${demo.price} USDC that shows a whole escrowed sale: held, served, evaluated and released.`,
    canonical: `${baseUrl}${DEMO_PATH}`,
    jsonUrl: `${baseUrl}${DEMO_PATH}?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Escrow, live</p>
<h1>An espresso, paid on delivery</h1>
<p class="lead">An agent buys an espresso for ${demo.price} USDC, all in one request: the contract holds the payment, the espresso is served, the delivery is evaluated, and the merchant is paid.</p></div>
${saleSection(demo)}
<section aria-labelledby="steps"><h2 id="steps">What happens</h2>
<div class="measure"><ol><li><strong>Hold.</strong> The buyer’s signature moves ${demo.price} USDC into the contract. The merchant cannot touch it yet.</li>
<li><strong>Espresso.</strong> The merchant serves the order, signs what was delivered and forwards it to the arbiter.</li>
<li><strong>Evaluation.</strong> The arbiter applies <a href="/escrow#rules">the published rules</a> and signs the record.</li>
<li><strong>Release.</strong> The contract pays the merchant, less the fee. If the delivery had failed, the buyer would have been refunded.</li></ol></div></section>
<section aria-labelledby="buy"><h2 id="buy">Buy one</h2>
${codeBlock({ id: "ask", caption: "Ask for the terms without paying", language: "bash", text: `curl -i -X POST ${baseUrl}${DEMO_PATH}` })}
<p class="measure">To pay, use an x402 client that supports ${withOr(demo.offers.map(({ scheme }) => html`<code>${scheme}</code>`))}: stock clients have <code>auth-capture</code> (<code>AuthCaptureEvmScheme</code>), <code>${demo.package}</code> has <code>commerce</code>. <a href="/docs#merchants">The documentation</a> has code for a buyer and for a shop. Also available <a href="${DEMO_PATH}?format=json">as JSON</a>.</p></section>`,
  });

const NETWORK = NETWORKS[ESCROW_NETWORK];

/** Names any escrow scheme while nothing is offered. */
const withOr = (names: readonly Markup[]): Markup =>
  names.length === 0
    ? html`an escrow scheme`
    : html`the scheme ${names.map((name, index) => (index === 0 ? name : html` or ${name}`))}`;

const saleSection = ({
  price,
  merchant,
  contract,
}: ShownDemo) => html`<section aria-labelledby="sale"><h2 id="sale">The sale</h2>
${
  contract === null || merchant === null
    ? html`<p>No escrow contract is configured here, so nothing can be bought.</p>`
    : facts(
        [
          ["Price", html`<strong>${price} ${NETWORK.money}</strong>`],
          ["Network", html`<code>${NETWORK.key}</code> (${NETWORK.id})`],
          ["Contract", addressLink(contract)],
          [
            "Merchant",
            html`${addressLink(merchant)}, one of our wallets, but not the one that receives fees and payments`,
          ],
        ],
        "ruled",
      )
}</section>`;

const addressLink = (address: string) =>
  html`<a class="mono" href="${explorerAddressUrl(ESCROW_NETWORK, address)}" rel="noopener">${address}</a>`;

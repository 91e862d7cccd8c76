import { html, longDay, type Markup } from "../kernel/html.ts";
import { codeBlock, renderPage, verifyForm } from "../kernel/page.ts";
import { rosette } from "../kernel/rosette.ts";

/** A paid test as the home page lists it. */
export interface MenuItem {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  /** USD in digits, such as 0.25. */
  readonly price: string;
  readonly summary: string;
}

interface Home {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  readonly menu: readonly MenuItem[];
  /** The free routes. */
  readonly reads: readonly { readonly path: string; readonly summary: string }[];
  readonly now: Date;
}

const DESCRIPTION =
  "Agents prove how they pay over x402, in USDC on Base, and anyone can check the proof: a public certificate, a badge, a verification record.";

/** The home page: what the service is, how an agent pays, what it costs, how to verify a wallet. */
export const renderHome = (home: Home): string =>
  renderPage({
    title: "Proof of how an agent pays",
    description: DESCRIPTION,
    canonical: `${home.baseUrl}/`,
    current: "/",
    main: html`<div class="masthead"><div class="hero"><h1>Proof of how an agent pays</h1>
<p class="lead">Point an agent’s x402 client at a test: it pays a real price in USDC on Base, and the service publishes what it saw as a certificate that anyone can check. Every result is an observed fact, never an opinion.</p>
<p class="actions"><a class="button" href="#pay">Pay from an agent</a> <a class="button quiet" href="#verify">Verify a wallet</a></p></div>
<svg viewBox="0 0 200 200" aria-hidden="true">${rosette("agent payments")}<path d="m78 102 16 16 30-34" fill="none" stroke="currentColor" stroke-width="7" stroke-linecap="round" stroke-linejoin="round"/></svg></div>
${verifySection()}
${testsSection(home)}
${paySection(home)}
${readsSection(home)}`,
  });

const verifySection = (): Markup => html`<section aria-labelledby="verify"><h2 id="verify">Verify a wallet</h2>
<p class="measure">Free. Shows every certificate of the wallet, whether it still counts, and how the wallet has paid in the last 90 days.</p>
${verifyForm()}</section>`;

const testsSection = ({
  menu,
  now,
}: Home): Markup => html`<section aria-labelledby="tests"><h2 id="tests">Paid tests</h2>
<ul class="rows">${menu.map(
  (item) => html`<li><h3>${item.summary}</h3><span class="price">${item.price} USDC</span>
<code class="note soft">${item.method} ${item.path}</code></li>`,
)}</ul>
<p class="soft small">Prices on ${longDay(now)}. The terms in each 402 answer are what counts. A certificate is fresh for 30 days. <a href="/inspect">Every step, for programs</a>.</p></section>`;

function paySection({ baseUrl, menu }: Home): Markup {
  const { method, path } = menu[0] ?? { method: "POST", path: "/test/basic" };
  const ask = `curl -i -X ${method} ${baseUrl}${path}`;
  const pay = `import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
const client = new x402Client().register("eip155:8453", new ExactEvmScheme(payer));
const fetchAndPay = wrapFetchWithPayment(fetch, client);

const answer = await fetchAndPay("${baseUrl}${path}", { method: "${method}" });
console.log(await answer.json()); // cert_url, badge_url, badge_markdown`;
  return html`<section aria-labelledby="pay"><h2 id="pay">Pay from an agent</h2>
<p class="measure">There is no account and no key: the payment is the authorization. Any standard x402 client works. Ask without paying, and the answer is 402 with the terms:</p>
${codeBlock({ id: "ask", caption: "See the terms", text: ask })}
<p class="measure">Let the client sign, and the same request answers with the certificate. The signature is gasless: the wallet needs USDC on Base and no ETH.</p>
${codeBlock({ id: "pay-code", caption: "Pay with @x402/fetch", text: pay })}</section>`;
}

const readsSection = ({ reads }: Home): Markup => html`<section aria-labelledby="read"><h2 id="read">Free to read</h2>
<ul class="rows">${reads.map(({ path, summary }) => html`<li><h3>${summary}</h3><code class="note soft">GET ${path}</code></li>`)}</ul></section>`;

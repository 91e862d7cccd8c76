import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Arbiter } from "../arbiter/index.ts";
import type { Board } from "../board/index.ts";
import { VALID_FOR_DAYS } from "../certificates/index.ts";
import { network, SERVICE, url, usd } from "../platform/http/schema.ts";
import { ACTIVITY_DAYS } from "../platform/index/activity.ts";
import { type Atomic, formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { html, longDay, type Markup } from "../platform/page/html.ts";
import { codeBlock, renderPage, sellerForm, verifyForm } from "../platform/page/page.ts";
import { rosette } from "../platform/page/rosette.ts";
import { shown } from "./docs-page.ts";
import { payProgram } from "./node-samples.ts";

/** A paid route, as listed on the home page. */
export interface MenuItem {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  /** USDC in digits, such as 0.25. */
  readonly price: string;
  readonly network: Network;
  readonly summary: string;
}

/** The service's totals. A figure is null if it cannot be read right now. */
export interface Figures {
  /** Currently certified wallets. */
  readonly certified: number | null;
  /** Certificates ever issued. */
  readonly certificates: number | null;
  readonly verdicts: number | null;
  /** USDC currently held by the escrow contracts. */
  readonly escrowed: Atomic | null;
}

interface Home {
  /** Where the service is published; no trailing slash. */
  readonly baseUrl: string;
  readonly menu: readonly MenuItem[];
  readonly reads: readonly { readonly path: string; readonly summary: string }[];
  readonly figures: Figures;
  readonly now: Date;
}

const DESCRIPTION =
  "Agents prove how they pay over x402, in USDC on Base, and anyone can check the proof: certificates, risk scores, an escrow and signed delivery verdicts.";

export const renderHome = (home: Home): string =>
  renderPage({
    title: "Proof of how an agent pays",
    description: DESCRIPTION,
    canonical: `${home.baseUrl}/`,
    current: "/",
    main: html`<div class="masthead"><div class="hero"><h1>Proof of how an agent pays</h1>
<p class="lead">Point your agent’s x402 client at a test. It pays a real price in USDC on Base, and the service publishes what it saw as a certificate that anyone can check. Every result is an observed fact, never an opinion.</p>
<p class="actions"><a class="button" href="/docs">Read the docs</a> <a class="button quiet" href="/pay">Try it with a wallet</a></p></div>
<svg viewBox="0 0 200 200" aria-hidden="true">${rosette("agent payments")}<path d="m78 102 16 16 30-34" fill="none" stroke="currentColor" stroke-width="7" stroke-linecap="round" stroke-linejoin="round"/></svg></div>
${figuresList(home.figures)}
${trySection(home)}
${verifySection()}
${groupsSection()}
${pricesSection(home)}
${paySection(home)}
${readsSection(home)}`,
  });

const UNKNOWN = html`<span class="soft">unavailable</span>`;
const whole = (value: number | null): Markup => (value === null ? UNKNOWN : html`${value.toLocaleString("en-US")}`);

function figuresList({ certified, certificates, verdicts, escrowed }: Figures): Markup {
  const figures = [
    ["Certified agents", whole(certified)],
    ["Certificates issued", whole(certificates)],
    ["Verdicts signed", whole(verdicts)],
    ["USDC in escrow", escrowed === null ? UNKNOWN : html`${formatUsd(escrowed)}`],
  ] as const;
  return html`<dl class="figures" aria-label="Totals to date">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

const firstTest = ({ menu }: Home): Pick<MenuItem, "method" | "path"> =>
  menu[0] ?? { method: "POST", path: "/test/basic" };

function trySection(home: Home): Markup {
  const { method, path } = firstTest(home);
  return html`<section aria-labelledby="try"><h2 id="try">Try it in one command</h2>
${codeBlock({ id: "ask", caption: "Request a test without paying: the response is a 402 with the terms", language: "bash", text: `curl -i -X ${method} ${home.baseUrl}${path}` })}</section>`;
}

const verifySection =
  (): Markup => html`<section aria-labelledby="verify"><h2 id="verify">Verify a wallet or a seller</h2>
<p class="measure">Free. See every certificate issued to the wallet, whether each one still counts, and how it has paid over the last ${ACTIVITY_DAYS} days.</p>
${verifyForm()}
<p class="measure">Before you pay an API, see what exams found there: is a payment charged once, as quoted, and safe to retry?</p>
${sellerForm()}</section>`;

const GROUPS = [
  { href: "/docs#agents", name: "You build an agent", does: "Certify how it pays and show the badge." },
  {
    href: "/docs#merchants",
    name: "You sell over x402",
    does: "Take the seller’s exam, serve verified agents, sell through the escrow.",
  },
  { href: "/docs#marketplaces", name: "You run a marketplace", does: "Score the wallets you list." },
  { href: "/docs#escrow-systems", name: "You run an escrow", does: "Buy a signed verdict on what was delivered." },
] as const;

const groupsSection = (): Markup => html`<section aria-labelledby="for"><h2 id="for">Who it is for</h2>
<nav class="contents" aria-label="Who it is for"><ul>${GROUPS.map(({ href, name, does }) => html`<li><a href="${href}"><strong>${name}</strong><span>${does}</span></a></li>`)}</ul></nav></section>`;

const pricesSection = ({ menu, now }: Home): Markup => html`<section aria-labelledby="tests"><h2 id="tests">Prices</h2>
<ul class="rows">${menu.map(
  (item) => html`<li><h3>${item.summary}</h3><span class="price">${item.price} ${NETWORKS[item.network].money}</span>
<code class="note soft">${item.method} ${item.path}</code></li>`,
)}</ul>
<p class="soft small">Prices as of ${longDay(now)}; the terms in each 402 response prevail. A certificate is fresh for ${VALID_FOR_DAYS} days. <a href="/inspect">Every test, step by step</a>.</p></section>`;

const paySection = ({
  baseUrl,
}: Home): Markup => html`<section aria-labelledby="pay"><h2 id="pay">Pay from an agent</h2>
<p class="measure">You don’t need an account or an API key: the payment is the authorization. Any standard x402 client works. The signature is gasless: the wallet needs USDC on Base but no ETH. <a href="/docs/pay">The same in Python</a>.</p>
${shown("pay-code", payProgram(baseUrl))}</section>`;

const readsSection = ({ reads }: Home): Markup => html`<section aria-labelledby="read"><h2 id="read">Free to read</h2>
<details><summary>All ${reads.length} free routes</summary>
<ul class="rows">${reads.map(({ path, summary }) => html`<li><h3>${summary}</h3><code class="note soft">GET ${path}</code></li>`)}</ul></details></section>`;

const named = { path: z.string(), summary: z.string() };

export const HOME = z
  .object({
    service: SERVICE,
    version: z.string(),
    url,
    paid: z.array(z.object({ id: z.string(), method: z.literal("POST"), ...named, price: usd, network })),
    free: z.array(z.object({ method: z.literal("GET"), ...named })),
  })
  .meta({ id: "Home" });

export interface SiteParts {
  readonly board: Pick<Board, "statistics">;
  readonly arbiter: Pick<Arbiter, "totals">;
  /** Returns the USDC held by all escrow contracts, or null while the index is unavailable. */
  readonly held: () => Promise<Atomic | null>;
}

const COUNT_AGAIN_MS = 15_000;

/** Returns a function that counts at most four times a minute and never rejects. */
export function createFigures(parts: SiteParts): () => Promise<Figures> {
  const known = new LRUCache<"figures", Promise<Figures>>({
    max: 1,
    ttl: COUNT_AGAIN_MS,
    memoMethod: () => count(parts),
  });
  return () => known.memo("figures");
}

async function count({ board, arbiter, held }: SiteParts): Promise<Figures> {
  const [statistics, verdicts, escrowed] = await Promise.all([
    board.statistics().catch(() => null),
    arbiter.totals().catch(() => null),
    held().catch(() => null),
  ]);
  return {
    certified: statistics?.wallets.certified ?? null,
    certificates: statistics?.certificates ?? null,
    verdicts: verdicts && Object.values(verdicts).reduce((sum, one) => sum + one, 0),
    escrowed,
  };
}

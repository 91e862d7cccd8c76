import { z } from "zod";
import { json, jsonOrPage } from "../platform/http/answer.ts";
import { NO_INPUT, type PaidRoute, paidRoute, type Route } from "../platform/http/route.ts";
import {
  address,
  atomic,
  count,
  network,
  networkKey,
  time,
  transactionHash,
  url,
  usd,
} from "../platform/http/schema.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import { html } from "../platform/page/html.ts";
import { codeBlock, page, renderPage, wantsHtml } from "../platform/page/page.ts";
import { CAFE_NETWORK, cafeOverview, ITEMS, type Item, MENU, orderPath, ROUND_RECEIPTS } from "./menu.ts";
import { nicknameOf, ORDER, type Order, receipt, receiptId, type Toast } from "./receipt.ts";
import type { CafeStore } from "./store.ts";

const renderCafe = (overview: ReturnType<typeof cafeOverview>, baseUrl: string): string =>
  renderPage({
    title: "Café",
    description: overview.what,
    canonical: `${baseUrl}/cafe`,
    jsonUrl: `${baseUrl}/cafe?format=json`,
    main: html`<div class="hero"><p class="eyebrow">Café, on the test network</p>
<h1>An espresso for your agent</h1>
<p class="lead">${overview.what}</p></div>
<section aria-labelledby="menu"><h2 id="menu">Menu</h2>
<ul class="rows">${overview.menu.map(
      ({ item, price, extra }) =>
        html`<li><h3>${item.replaceAll("-", " ")}, with ${extra}</h3><span class="price">${price} ${NETWORKS[CAFE_NETWORK].money}</span><code class="note soft">POST ${orderPath(item)}</code></li>`,
    )}</ul>
${codeBlock({ id: "order", caption: "See the terms", language: "bash", text: `curl -i -X POST ${baseUrl}${orderPath("espresso")}` })}</section>
<section aria-labelledby="rounds"><h2 id="rounds">Open rounds</h2>
${
  overview.open_rounds.length === 0
    ? html`<p class="soft">None right now. Receipts served to date: ${overview.receipts_served}.</p>`
    : html`<ul class="rows">${overview.open_rounds.map(
        ({ nickname, left }) => html`<li><h3>${nickname}</h3><span class="note soft">buys the next ${left}</span></li>`,
      )}</ul>`
}</section>`,
  });

const CAFE = z
  .object({
    what: z.string(),
    network,
    network_key: networkKey,
    menu: z.array(
      z.object({
        item: z.enum(ITEMS),
        method: z.literal("POST"),
        url,
        price: usd,
        price_atomic: atomic,
        extra: z.string(),
      }),
    ),
    receipts_served: count,
    open_rounds: z.array(z.object({ nickname: z.string(), left: count })),
  })
  .meta({ id: "Cafe" }) satisfies z.ZodType<ReturnType<typeof cafeOverview>>;

const EXTRAS = {
  espresso: { ascii_art: z.string() },
  "flat-white": { fortune: z.string() },
  "the-good-stuff": { title: z.string() },
  "buy-a-round": { your_round: z.object({ nickname: z.string(), receipts: z.literal(ROUND_RECEIPTS) }) },
} as const satisfies Record<Item, Readonly<Record<string, z.ZodType>>>;

const receiptSchema = (item: Item) =>
  z.object({
    receipt: z.string().regex(/^[0-9a-f]{16}$/),
    item: z.literal(item),
    price: usd,
    payer: address,
    network,
    transaction: transactionHash,
    explorer_url: url,
    served_at: time,
    ...EXTRAS[item],
    round: z
      .object({ by: z.string(), number: z.int().min(1).max(ROUND_RECEIPTS), of: z.literal(ROUND_RECEIPTS) })
      .exactOptional(),
    note: z.string(),
  }) satisfies z.ZodType<ReturnType<typeof receipt>>;

interface CafeRouteParts {
  readonly store: CafeStore;
  readonly baseUrl: string;
  readonly now: () => Date;
}

const OPEN_ROUNDS = 20;

export const cafeRoutes = (parts: CafeRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: "/cafe",
    summary: "The test-network café: its menu and open rounds",
    output: jsonOrPage(CAFE),
    async handle(c) {
      const [rounds, served] = await Promise.all([parts.store.openRounds(OPEN_ROUNDS), parts.store.served()]);
      const overview = cafeOverview({ rounds, served }, parts.baseUrl);
      return wantsHtml(c) ? page(c, renderCafe(overview, parts.baseUrl)) : c.json(overview, 200, { vary: "Accept" });
    },
  },
  ...ITEMS.map((item) => orderRoute(item, parts)),
];

function orderRoute(item: Item, { store, now }: CafeRouteParts): PaidRoute {
  const { price, extra } = MENU[item];
  const isRound = item === "buy-a-round";
  return paidRoute<Order>({
    id: `order.${item}`,
    method: "POST",
    path: orderPath(item),
    terms: { networks: [CAFE_NETWORK], price },
    summary: `Café: ${item.replaceAll("-", " ")}, with ${extra}`,
    description: `Demo on the Base Sepolia test network: you get a receipt and ${extra}.`,
    input: isRound ? ORDER : NO_INPUT,
    output: json(receiptSchema(item)),
    ...(isRound && { hooks: { query: ["nickname"] } }),
    example: {
      input: isRound ? { nickname: "Ada" } : {},
      output: { receipt: "0123456789abcdef", item, price: formatUsd(price), served_at: "2026-11-25T09:30:00.000Z" },
    },
    sell: {
      immediate: (sale) => ({
        async complete(transaction) {
          const { payer } = sale.payment;
          const round = isRound ? { nickname: nicknameOf(sale.input, payer) } : null;
          const write = (toast: Toast | null) => JSON.stringify(receipt(item, sale, { toast, now: now() }));
          const text = await store.serve({ id: receiptId(sale.payment), payer, round, write }, transaction);
          return { status: 200, body: Buffer.from(text), location: null };
        },
      }),
    },
  });
}

import { json, jsonOrPage } from "../platform/http/answer.ts";
import { NO_INPUT, type PaidRoute, paidRoute, type Route } from "../platform/http/route.ts";
import { formatUsd } from "../platform/money.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import { renderCafe } from "./cafe-page.ts";
import { CAFE_NETWORK, cafeOverview, ITEMS, type Item, MENU, orderPath } from "./menu.ts";
import { nicknameOf, ORDER, type Order, receipt, receiptId, type Toast } from "./receipt.ts";
import { CAFE, receiptSchema } from "./schemas.ts";
import type { CafeStore } from "./store.ts";

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

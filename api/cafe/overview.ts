import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { OpenRound } from "./cafe-store.ts";
import { CAFE_NETWORK, ITEMS, type Item, MENU } from "./menu.ts";

export const orderPath = (item: Item): string => `/order/${item}`;

/** The café at a glance: menu, receipts so far, and whose rounds still have receipts left. */
export const cafeOverview = (
  { rounds, served }: { readonly rounds: readonly OpenRound[]; readonly served: number },
  baseUrl: string,
) => ({
  what: `A café where agents can try out a real payment with ${NETWORKS[CAFE_NETWORK].money}. It works like every other paid route here.`,
  network: CAFE_NETWORK,
  network_key: NETWORKS[CAFE_NETWORK].key,
  menu: ITEMS.map((item) => ({
    item,
    method: "POST",
    url: `${baseUrl}${orderPath(item)}`,
    price: formatUsd(MENU[item].price),
    price_atomic: MENU[item].price.toString(),
    extra: MENU[item].extra,
  })),
  receipts_served: served,
  open_rounds: rounds,
});

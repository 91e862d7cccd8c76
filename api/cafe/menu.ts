import { type Atomic, formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network, TEST_NETWORK } from "../platform/networks.ts";
import type { OpenRound } from "./store.ts";

export const ITEMS = ["espresso", "flat-white", "the-good-stuff", "buy-a-round"] as const;

export type Item = (typeof ITEMS)[number];

export const CAFE_NETWORK: Network = TEST_NETWORK;

/** The number of other wallets' receipts that a round covers. */
export const ROUND_RECEIPTS = 10;

/** SPEC.md, general rules. */
export const MENU: Readonly<Record<Item, { readonly price: Atomic; readonly extra: string }>> = {
  espresso: { price: 100_000n, extra: "an ASCII-art cup" },
  "flat-white": { price: 250_000n, extra: "a fortune" },
  "the-good-stuff": { price: 1_000_000n, extra: "a title for the day" },
  "buy-a-round": {
    price: 5_000_000n,
    extra: `your nickname on the next ${ROUND_RECEIPTS} receipts issued to others`,
  },
};

export const orderPath = (item: Item): string => `/order/${item}`;

/** Returns the menu, the number of receipts, and the rounds with receipts left. */
export const cafeOverview = (
  { rounds, served }: { readonly rounds: readonly OpenRound[]; readonly served: number },
  baseUrl: string,
) => ({
  what: `A café where agents can practice a real payment with ${NETWORKS[CAFE_NETWORK].money}. It works like every other paid route here.`,
  network: CAFE_NETWORK as Network,
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

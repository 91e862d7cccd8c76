import type { Atomic } from "../platform/money.ts";
import { type Network, TEST_NETWORK } from "../platform/networks.ts";

export const ITEMS = ["espresso", "flat-white", "the-good-stuff", "buy-a-round"] as const;

export type Item = (typeof ITEMS)[number];

/** The café is on the test network, where money has no value. */
export const CAFE_NETWORK: Network = TEST_NETWORK;

/** How many receipts of others a round covers. */
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

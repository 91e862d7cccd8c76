import { isPaid, isQuoted, type Listed, schemesOf } from "../platform/http/route.ts";
import { type Atomic, formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";

/** The terms of a route with a fixed price. */
export interface PaidListing {
  readonly id: string;
  /** The schemes that its 402 offers, preferred first. All have the same amount and payee. */
  readonly schemes: readonly string[];
  /** The networks that it offers, preferred first. */
  readonly networks: readonly [Network, ...Network[]];
  readonly price: Atomic;
  readonly description: string;
  /** The seller's address, or null if the service itself is paid. */
  readonly payTo: Address | null;
}

/** Returns the terms of a route, or null if it is free, quotes each call, or is not for sale. */
export function paidListing(route: Listed): PaidListing | null {
  if (isPaid(route)) {
    const { id, description, terms } = route;
    const { networks, price, seller = null, closed } = terms;
    return closed === undefined ? { id, schemes: schemesOf(terms), networks, price, description, payTo: seller } : null;
  }
  return null;
}

/** Formats a price for people, in real or test money. */
export const priceText = ({ price, networks: [network] }: Pick<PaidListing, "price" | "networks">): string =>
  `${formatUsd(price)} ${NETWORKS[network].money}`;

/** Returns the price of a call for people, or null if it is free. */
export function costOf(route: Listed): string | null {
  const paid = paidListing(route);
  if (paid !== null) return priceText(paid);
  return isQuoted(route) ? "priced per call" : null;
}

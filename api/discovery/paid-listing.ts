import { isPaid, isQuoted, type Listed, schemesOf } from "../platform/http/route.ts";
import { type Atomic, formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";

/** The terms of a route with a fixed price. */
export interface PaidListing {
  readonly id: string;
  /** The schemes that its 402 offers, preferred first; their amount and payee are the same. */
  readonly schemes: readonly string[];
  /** The networks that it offers, preferred first. */
  readonly networks: readonly [Network, ...Network[]];
  readonly price: Atomic;
  readonly description: string;
  /** Null if it is paid to the service's own address. */
  readonly payTo: Address | null;
}

/** Null for a route that is free, quotes each call, or is not for sale. */
export function paidListing(route: Listed): PaidListing | null {
  if (isPaid(route)) {
    const { id, description, terms } = route;
    const { networks, price, seller = null, closed } = terms;
    return closed === undefined ? { id, schemes: schemesOf(terms), networks, price, description, payTo: seller } : null;
  }
  return null;
}

/** A price for people: real money, or test money without value. */
export const priceText = ({ price, networks: [network] }: Pick<PaidListing, "price" | "networks">): string =>
  `${formatUsd(price)} ${NETWORKS[network].money}`;

/** What a call costs, in words; null if it is free. */
export function costOf(route: Listed): string | null {
  const paid = paidListing(route);
  if (paid !== null) return priceText(paid);
  return isQuoted(route) ? "priced per call" : null;
}

import { requirements } from "../payments/schemes/exact.ts";
import { type JsonSchema, jsonSchema } from "../platform/http/json-schema.ts";
import { isPaid, isQuoted, type Listed, networksOfSignIn, schemesOf } from "../platform/http/route.ts";
import { type Atomic, formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { SIGN_IN, SIGN_IN_HEADER } from "../purchases/sign-in.ts";
import { bodySchema } from "./openapi.ts";

/** The terms of a route with a fixed price. */
export interface PaidListing {
  readonly id: string;
  /** The schemes that its 402 offers, preferred first; their amount, asset and payee are the same. */
  readonly schemes: readonly string[];
  readonly network: Network;
  readonly price: Atomic;
  readonly description: string;
  /** Null if it is paid to the service's own address. */
  readonly payTo: Address | null;
}

/** Null for a route that is free, quotes each call, or is not for sale. */
export function paidListing(route: Listed): PaidListing | null {
  if (isPaid(route)) {
    const { id, network, price, description, seller = null, closed } = route;
    const schemes = schemesOf(route);
    return closed === undefined ? { id, schemes, network, price, description, payTo: seller } : null;
  }
  return null;
}

/** A price for people: real money, or test money without value. */
export const priceText = ({ price, network }: PaidListing): string => `${formatUsd(price)} ${NETWORKS[network].money}`;

/** What a call costs, in words; null if it is free. */
export function costOf(route: Listed): string | null {
  const paid = paidListing(route);
  if (paid !== null) return priceText(paid);
  return isQuoted(route) ? "priced per call" : null;
}

export interface ManifestParts {
  readonly routes: readonly Listed[];
  readonly baseUrl: string;
  readonly payTo: Address;
  /** The facilitator's URL: our own if it is in this process. */
  readonly facilitator: string;
  readonly lastUpdated: Date;
}

/**
 * `/.well-known/x402`: every paid resource with its terms, input, and output (SPEC.md, free read routes), once for each
 * scheme that its 402 offers, and what a wallet signs in to.
 */
export const manifest = ({ routes, baseUrl, payTo, facilitator, lastUpdated }: ManifestParts) => ({
  x402Version: 2,
  facilitator,
  lastUpdated: lastUpdated.toISOString(),
  resources: routes.flatMap((route) => {
    const paid = paidListing(route);
    if (paid === null) return [];
    const terms = requirements({ network: paid.network, payTo: paid.payTo ?? payTo, value: paid.price });
    return paid.schemes.map((scheme) => ({
      resource: `${baseUrl}${route.path}`,
      type: "http" as const,
      method: route.method,
      scheme,
      network: terms.network,
      networkKey: NETWORKS[paid.network].key,
      asset: terms.asset,
      amount: terms.amount,
      price: priceText(paid),
      mimeType: "application/json",
      description: paid.description,
      payTo: terms.payTo,
      inputSchema: inputSchema(route),
      outputSchema: outputSchema(route),
    }));
  }),
  signIn: routes.flatMap((route) =>
    networksOfSignIn(route).map((network) => ({
      resource: `${baseUrl}${route.path}`,
      method: route.method,
      extension: SIGN_IN,
      header: SIGN_IN_HEADER,
      network,
      mimeType: "application/json" as const,
      description: route.summary,
    })),
  ),
});

function inputSchema(route: Listed): JsonSchema {
  const schema = bodySchema(route);
  return schema === null ? {} : jsonSchema(schema, "input");
}

function outputSchema(route: Listed): JsonSchema {
  const schema = route.output["application/json"];
  return schema ? jsonSchema(schema, "output") : {};
}

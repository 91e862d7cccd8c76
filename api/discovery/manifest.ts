import { requirements } from "../payments/index.ts";
import { type JsonSchema, jsonSchema } from "../platform/http/json-schema.ts";
import { type Listed, networksOfSignIn } from "../platform/http/route.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { SIGN_IN, SIGN_IN_HEADER } from "../purchases/index.ts";
import { bodySchema } from "./openapi.ts";
import { paidListing, priceText } from "./paid-listing.ts";

export interface ManifestParts {
  readonly routes: readonly Listed[];
  readonly baseUrl: string;
  readonly payTo: Address;
  /** The facilitator's URL, or the service's URL if it settles payments in this process. */
  readonly facilitator: string;
  readonly lastUpdated: Date;
}

/**
 * Returns `/.well-known/x402`: every paid resource with its terms, input, and output (SPEC.md, free read routes), once for
 * each scheme that its 402 offers, and every route that a wallet signs in to.
 */
export const manifest = ({ routes, baseUrl, payTo, facilitator, lastUpdated }: ManifestParts) => ({
  x402Version: 2,
  facilitator,
  lastUpdated: lastUpdated.toISOString(),
  resources: routes.flatMap((route) => {
    const paid = paidListing(route);
    if (paid === null) return [];
    const offered = paid.networks.flatMap((network) => {
      const terms = requirements({ network, payTo: paid.payTo ?? payTo, value: paid.price });
      return paid.schemes.map((scheme) => ({ network, terms, scheme }));
    });
    return offered.map(({ network, terms, scheme }) => ({
      resource: `${baseUrl}${route.path}`,
      type: "http" as const,
      method: route.method,
      scheme,
      network: terms.network,
      networkKey: NETWORKS[network].key,
      asset: terms.asset,
      amount: terms.amount,
      price: priceText({ ...paid, networks: [network] }),
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

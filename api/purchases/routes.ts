import type { PaymentRequired } from "@x402/core/types";
import type { Context } from "hono";
import { z } from "zod";
import { type OfferReceipt, toBase64Json } from "../payments/index.ts";
import { json, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { jsonSchema } from "../platform/http/json-schema.ts";
import { type Clients, clientOf } from "../platform/http/request.ts";
import { type Listed, type PaidRoute, type Route, sold } from "../platform/http/route.ts";
import { network as networkId, transactionHash } from "../platform/http/schema.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import { type Asked, encodeCursor, type PurchaseLists, parseCursor, purchasesDocument } from "./list-purchases.ts";
import { PURCHASES } from "./schemas.ts";
import { parseSignIn, SIGN_IN, SIGN_IN_HEADER, SIGN_IN_PAYLOAD, type SignInInfo } from "./sign-in.ts";
import type { ShownPage } from "./store.ts";

export interface PurchaseRouteParts {
  /** The whole table, complete by the time the routes are called. */
  readonly routes: () => readonly Listed[];
  readonly purchases: PurchaseLists;
  readonly peers: Clients;
  readonly offerReceipt: Pick<OfferReceipt, "receipt">;
  readonly baseUrl: string;
  readonly now: () => Date;
}

export const PURCHASES_PATH = "/purchases";

const SUMMARY = "Everything bought by the wallet that signs in, with the responses it got";

export const purchaseRoutes = (parts: PurchaseRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: PURCHASES_PATH,
    summary: SUMMARY,
    signIn: Object.values(NETWORKS).map(({ id }) => id),
    parameters: [
      optionalInQuery({
        name: "network",
        description: `The chain of the payments. The default is ${MAIN_NETWORK}.`,
        schema: networkId,
      }),
      optionalInQuery({
        name: "transaction",
        description: "Only purchases that this transaction paid for.",
        schema: transactionHash,
      }),
      optionalInQuery({ name: "cursor", description: "Taken from the previous page's `next`.", schema: z.string() }),
    ],
    output: json(PURCHASES),
    problems: ["malformed_request"],
    handle: (c) => purchases(c, parts),
  },
];

async function purchases(c: Context, parts: PurchaseRouteParts): Promise<Response> {
  const asked = parseQuery(c);
  const header = c.req.header(SIGN_IN_HEADER);
  if (header === undefined) return demand(c, parts, { asked, error: "Sign in with the wallet that paid." });
  const signIn = parseSignIn(header);
  if ("malformed" in signIn) throw malformed(signIn.malformed);
  const routeOf = routesOf(parts);
  const shown = await parts.purchases.show(signIn, { ...asked, client: clientOf(c, parts.peers) }, routeOf);
  if (shown === "unread") throw new Problem("not_available", { detail: UNREAD, headers: { "retry-after": "5" } });
  if ("why" in shown)
    return demand(c, parts, { asked, error: `${shown.code}: ${shown.why} Sign the challenge in this response.` });
  const { baseUrl, offerReceipt, now } = parts;
  const page = { network: asked.network, next: nextUrl(asked, shown, baseUrl) };
  const document = await purchasesDocument(shown, page, {
    baseUrl,
    receipt: offerReceipt.receipt,
    routeOf,
    now: now(),
  });
  return c.json(document, 200, { "cache-control": "private, no-store" });
}

function routesOf({ routes }: PurchaseRouteParts): (id: string) => PaidRoute | undefined {
  const table = new Map(sold(routes()).map((route) => [route.id, route]));
  return (id) => table.get(id);
}

function parseQuery(c: Context): Asked {
  const { network = MAIN_NETWORK, transaction, cursor } = c.req.query();
  const known = Object.values(NETWORKS).find(({ id }) => id === network);
  const ids = Object.keys(NETWORKS).join(" or ");
  if (known === undefined) throw malformed(`The query parameter network must be ${ids}.`);
  if (transaction !== undefined && !/^0x[0-9a-fA-F]{64}$/.test(transaction))
    throw malformed("The query parameter transaction must be a transaction hash: 0x and 64 hex digits.");
  const after = cursor === undefined ? null : parseCursor(cursor);
  if (cursor !== undefined && after === null)
    throw malformed("The query parameter cursor must come from `next` on a page.");
  return { network: known.id, after, transaction: (transaction?.toLowerCase() as Hex | undefined) ?? null };
}

const UNREAD =
  "The wallet's contract must verify the signature, but its chain is unreachable right now. Resend the same header.";

const malformed = (detail: string) => new Problem("malformed_request", { detail });

/** Returns null on the last page. */
function nextUrl({ network, transaction }: Asked, { purchases, isLast }: ShownPage, baseUrl: string): string | null {
  const last = purchases.at(-1);
  if (isLast || last === undefined) return null;
  const query = new URLSearchParams({
    ...(network === MAIN_NETWORK ? {} : { network }),
    ...(transaction === null ? {} : { transaction }),
    cursor: encodeCursor(last),
  });
  return `${baseUrl}${PURCHASES_PATH}?${query}`;
}

/** Sends the 402 of x402's extension `sign-in-with-x`. It offers no terms, because nothing is for sale. */
function demand(
  c: Context,
  { purchases: lists, baseUrl }: PurchaseRouteParts,
  { asked, error }: { readonly asked: Asked; readonly error: string },
): Response {
  const required: PaymentRequired = {
    x402Version: 2,
    resource: { url: `${baseUrl}${PURCHASES_PATH}`, description: SUMMARY, mimeType: "application/json" },
    accepts: [],
    extensions: { [SIGN_IN]: extension(lists.challenge(asked.network), asked.network) },
    error,
  };
  const headers = { "payment-required": toBase64Json(required), "cache-control": "no-store" };
  return c.json({ x402Version: 1, error: `${error} ${WHERE}`, accepts: [] }, 402, headers);
}

const WHERE = `No payment is due. The challenge is in the PAYMENT-REQUIRED header (x402 version 2, extension "${SIGN_IN}"), and its signature goes into ${SIGN_IN_HEADER}.`;

const SCHEMA = jsonSchema(SIGN_IN_PAYLOAD, "input");

const extension = (info: SignInInfo, network: Network) => ({
  info,
  supportedChains: [{ chainId: network, type: "eip191" }],
  schema: SCHEMA,
});

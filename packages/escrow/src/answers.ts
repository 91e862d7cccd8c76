import type { Address } from "viem";
import { encodeText } from "./base64.ts";
import type { ContestHeaders } from "./contest.ts";
import type { Outcome } from "./sale.ts";
import type { requirements } from "./schemes.ts";
import { networkOf, type Offer } from "./terms.ts";

export interface Challenge {
  readonly accepts: readonly ReturnType<typeof requirements>[];
  readonly url: string;
  readonly description: string;
  readonly error: string;
  readonly extensions: Extensions;
}

/** What x402 declares besides the terms and the settlement. */
export type Extensions = Readonly<Record<string, unknown>>;

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
  });

/** The 402: x402 version 2 terms in its header; its body has nothing a version 1 client could sign. */
export function paymentRequired({ accepts, url, description, error, extensions }: Challenge): Response {
  const resource = { url, description, mimeType: "application/json" };
  const terms = { x402Version: 2, error, resource, accepts, extensions };
  const schemes = accepts.map(({ scheme }) => `"${scheme}"`).join(" or ");
  const explained = `${error} This sale goes through an escrow: x402 version 2, scheme ${schemes}; see the PAYMENT-REQUIRED header.`;
  const body = { x402Version: 1, error: explained, accepts: [] };
  return json(402, body, { "payment-required": encodeText(JSON.stringify(terms)) });
}

export const malformed = (error: string): Response => json(400, { error });
export const conflict = (error: string): Response => json(409, { error });

/** Nothing is known to have failed: the same header will finish what was started. */
export const unavailable = (error: string): Response => json(503, { error }, { "retry-after": "5" });

export interface Paid {
  readonly offer: Offer;
  readonly payer: Address;
  /** What the buyer needs in order to contest; null if it cannot. */
  readonly contest: ContestHeaders | null;
  readonly extensions: Extensions;
}

/** The merchant's response plus what became of its payment. */
export function delivered(
  { id, delivery, isReplay }: Extract<Outcome, { kind: "delivered" }>,
  { offer: { escrow, price }, payer, contest, extensions }: Paid,
): Response {
  const headers = new Headers();
  for (const [name, value] of delivery.headers) {
    if (!/^(content-length|transfer-encoding|connection)$/i.test(name)) headers.append(name, value);
  }
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  const settled = {
    success: true,
    transaction: delivery.transaction,
    network: networkOf(escrow),
    payer,
    amount: String(price),
    extensions,
  };
  headers.set("payment-response", encodeText(JSON.stringify(settled)));
  headers.set("x-escrow-payment", id);
  headers.set("x-escrow-decision", delivery.decision);
  if (contest !== null) {
    headers.set("x-escrow-contest", contest.url);
    headers.set("x-escrow-delivery", encodeText(JSON.stringify(contest.delivery)));
  }
  if (isReplay) headers.set("x-idempotent-replay", "true");
  const body = delivery.body.length === 0 ? null : new Uint8Array(delivery.body);
  return new Response(body, { status: delivery.status, headers });
}

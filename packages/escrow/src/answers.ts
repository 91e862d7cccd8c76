import type { Address, Hex } from "viem";
import { encodeText } from "./bytes.ts";
import type { ContestHeaders } from "./contest.ts";
import type { Delivery } from "./delivery.ts";
import { EXACT, type exactRequirements } from "./exact-terms.ts";
import { ruleOf } from "./rules.ts";
import type { Delivered } from "./sale.ts";
import type { requirements } from "./schemes.ts";
import type { KeptDelivery } from "./stores/delivery-store.ts";
import { networkOf, type Offer } from "./terms.ts";

export interface Challenge {
  readonly accepts: readonly (ReturnType<typeof requirements> | ReturnType<typeof exactRequirements>)[];
  readonly url: string;
  readonly description: string;
  readonly error: string;
  readonly extensions: Extensions;
}

/** The x402 extensions of a message. */
export type Extensions = Readonly<Record<string, unknown>>;

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
  });

/**
 * The maximum length of `PAYMENT-REQUIRED` and `PAYMENT-RESPONSE`, in characters. nginx reads all headers of a response
 * into 4 KB; the rest is for our own and the merchant's other headers.
 */
const LONGEST = 3_200;
/** The length of a text that fits with any terms, in characters. */
const SHORT = 100;

/** Returns as much of the 402 as fits in its header: the terms always, then the offers, then the full texts. */
function fitting({ accepts, url, description, error, extensions }: Challenge): { header: string; isSigned: boolean } {
  const render = (given: { url: string; description: string; error: string; extensions: Extensions }): string => {
    const resource = { url: given.url, description: given.description, mimeType: "application/json" };
    const terms = { x402Version: 2, error: given.error, resource, accepts, extensions: given.extensions };
    return encodeText(JSON.stringify(terms));
  };
  const short = { description: description.slice(0, SHORT), error: error.slice(0, SHORT) };
  const candidates = [
    { url, description, error, extensions },
    { url, description, error, extensions: {} },
    { url, ...short, extensions: {} },
  ];
  for (const candidate of candidates) {
    const header = render(candidate);
    if (header.length <= LONGEST) return { header, isSigned: candidate.extensions === extensions };
  }
  const [path = url] = url.split("?");
  return { header: render({ url: path, ...short, extensions: {} }), isSigned: false };
}

/**
 * Returns the 402: x402 version 2 terms in its header. Its body contains nothing that a version 1 client could sign,
 * except the signed offers that do not fit in the header.
 */
export function paymentRequired(challenge: Challenge): Response {
  const { accepts, error, extensions } = challenge;
  const { header, isSigned } = fitting(challenge);
  const schemes = accepts.map(({ scheme }) => `"${scheme}"`).join(" or ");
  const escrowed = accepts.some(({ scheme }) => scheme === EXACT)
    ? `This sale goes through an escrow, or without its protection by "${EXACT}"`
    : "This sale goes through an escrow";
  const explained = `${error} ${escrowed}: x402 version 2, scheme ${schemes}; see the PAYMENT-REQUIRED header.`;
  const body = { x402Version: 1, error: explained, accepts: [], ...(isSigned ? {} : { extensions }) };
  return json(402, body, { "payment-required": header });
}

export const malformed = (error: string): Response => json(400, { error });
export const conflict = (error: string): Response => json(409, { error });

/** Returns a 503 for an unknown outcome: the same header will finish the purchase. */
export const unavailable = (error: string): Response => json(503, { error }, { "retry-after": "5" });

/** A payment's settlement, and the details reported with it. */
export interface Paid {
  readonly offer: Offer;
  readonly payer: Address;
  /** The values that the buyer needs to contest; null if it cannot. */
  readonly contest: ContestHeaders | null;
  readonly extensions: Extensions;
}

/** Returns the merchant's response with its payment's outcome in the headers. */
export function delivered({ delivery, ...outcome }: Delivered, paid: Paid): Response {
  const answer = passedOn(delivery);
  const { headers } = answer;
  for (const [name, value] of settled({ delivery, ...outcome }, paid)) headers.set(name, value);
  const { contest } = paid;
  if (contest !== null) {
    headers.set("x-escrow-contest", contest.url);
    headers.set("x-escrow-delivery", encodeText(JSON.stringify(contest.delivery)));
  }
  return answer;
}

/** Returns the response bought by an ordinary payment. */
export function sold(
  { delivery, isReplay }: { readonly delivery: KeptDelivery; readonly isReplay: boolean },
  paid: Omit<Paid, "contest">,
): Response {
  const answer = passedOn(delivery);
  answer.headers.set("payment-response", settlementHeader(delivery.transaction, paid));
  if (isReplay) answer.headers.set("x-idempotent-replay", "true");
  return answer;
}

/** Returns a handler's response as it is sent; if nothing was charged, this is the whole response. */
export function passedOn({ status, headers: given, body }: Delivery): Response {
  const headers = new Headers();
  for (const [name, value] of given) {
    if (!/^(content-length|transfer-encoding|connection)$/i.test(name)) headers.append(name, value);
  }
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  return new Response(body.length === 0 ? null : new Uint8Array(body), { status, headers });
}

/** Returns the response that replaces a refunded one that looks like goods, with only the reason for the refund. */
export function withheld(
  outcome: Omit<Delivered, "type">,
  paid: Pick<Paid, "offer" | "payer"> & { readonly arbiterUrl: string },
): Response {
  const { id, delivery } = outcome;
  const record = `${paid.arbiterUrl}/escrow/evaluation/${id}`;
  const rule = ruleOf(delivery);
  const why = rule?.decision === "refund" ? ` ${rule.when}` : "";
  const error =
    `The arbiter refunds payment ${id} in full, so the merchant's response, with status ${delivery.status}, is ` +
    `withheld.${why} Its record is at ${record}.`;
  return json(
    500,
    { error, payment_id: id, decision: delivery.decision, withheld_status: delivery.status, record },
    Object.fromEntries(settled(outcome, { ...paid, extensions: {} })),
  );
}

const settled = (
  { id, delivery, isReplay }: Omit<Delivered, "type">,
  paid: Omit<Paid, "contest">,
): readonly (readonly [string, string])[] => [
  ["payment-response", settlementHeader(delivery.transaction, paid)],
  ["x-escrow-payment", id],
  ["x-escrow-decision", delivery.decision],
  ...(isReplay ? [["x-idempotent-replay", "true"] as const] : []),
];

function settlementHeader(transaction: Hex, { offer: { escrow, price }, payer, extensions }: Omit<Paid, "contest">) {
  const settlement = { success: true, transaction, network: networkOf(escrow), payer, amount: String(price) };
  const signed = encodeText(JSON.stringify({ ...settlement, extensions }));
  // A receipt names the URL, which may have any length.
  return signed.length <= LONGEST ? signed : encodeText(JSON.stringify(settlement));
}

import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import type { Hex, LocalAccount } from "viem";
import { EscrowScheme, type EscrowSchemeOptions } from "../../../packages/escrow/src/index.ts";
import {
  decodePaymentHeaders,
  type PresentedPayment,
  parsePayload,
} from "../../../packages/escrow/src/payment-header.ts";
import type { TestChain } from "../chain/chain.ts";
import { newPayer } from "../payments/signing.ts";
import { SHOP, type TestMerchant } from "./shop.ts";

/** Everything a client sent to a merchant and received. */
export interface Bought {
  readonly response: Response;
  /** The payment header, to be sent again. */
  readonly header: string;
  readonly id: Hex;
  readonly decision: string | null;
}

/** What a buyer's client pays by: our "commerce", or the stock "auth-capture", unmodified. */
export type Pays = "commerce" | "auth-capture";

/** The stock client of a buyer. */
const clientOf = (buyer: LocalAccount, pays: Pays = "commerce", options: EscrowSchemeOptions = {}): x402Client =>
  new x402Client().register(
    "eip155:*",
    pays === "commerce" ? new EscrowScheme(buyer, options) : new AuthCaptureEvmScheme(buyer),
  );

/** Buys with the stock client of `@x402/fetch`. */
export async function buyFrom(
  shop: Pick<TestMerchant, "fetch">,
  buyer: LocalAccount,
  { url = SHOP, pays, ...options }: EscrowSchemeOptions & { readonly url?: string; readonly pays?: Pays } = {},
): Promise<Bought> {
  let header = "";
  const watched: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature") ?? header;
    return shop.fetch(request);
  };
  const client = clientOf(buyer, pays, options);
  const response = await wrapFetchWithPayment(watched, client)(url, { method: "POST" });
  const id = (response.headers.get("x-escrow-payment") ?? "0x") as Hex;
  return { response, header, id, decision: response.headers.get("x-escrow-decision") };
}

/** An unsent payment header for the merchant's offer. */
export async function signFor(
  shop: Pick<TestMerchant, "fetch">,
  buyer: LocalAccount,
  order: string | { readonly url?: string; readonly pays: Pays } = SHOP,
): Promise<string> {
  const { url = SHOP, pays = "commerce" } = typeof order === "string" ? { url: order } : order;
  let header: string | null = null;
  const held: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    header = request.headers.get("payment-signature");
    return header === null ? shop.fetch(request) : new Response("kept");
  };
  await wrapFetchWithPayment(held, clientOf(buyer, pays))(url, { method: "POST" });
  if (header === null) throw new Error("The client signed nothing.");
  return header;
}

export const pay = (shop: Pick<TestMerchant, "fetch">, header: string, url = SHOP): Promise<Response> =>
  shop.fetch(url, { method: "POST", headers: { "payment-signature": header } });

export const newBuyer = (chain: TestChain, atomic = 1_000_000n): Promise<LocalAccount> => newPayer(chain, atomic);

/** A "commerce" payment as its header carries it. */
export function presentedIn(header: string): PresentedPayment {
  const decoded = decodePaymentHeaders({ "PAYMENT-SIGNATURE": header });
  if (decoded === null || !("payload" in decoded)) throw new Error(`${JSON.stringify(decoded)} is no payment.`);
  const presented = parsePayload(decoded.payload);
  if ("malformed" in presented) throw new Error(`${JSON.stringify(presented)} is malformed.`);
  return { ...presented, scheme: decoded.accepted.scheme, network: decoded.accepted.network };
}

/** A payment header's payload, and a header made from one. */
export const decodeHeader = (header: string) => JSON.parse(Buffer.from(header, "base64").toString());
export const encodeHeader = (payment: unknown): string => Buffer.from(JSON.stringify(payment)).toString("base64");

import { ExactEvmScheme } from "@x402/evm/exact/client";
import { x402Client, x402HTTPClient } from "@x402/fetch";
import type { LocalAccount } from "viem";
import { formatUsd } from "./money.ts";
import { ServiceError } from "./service.ts";
import { amountOf, type Offer, type PaymentRequired } from "./terms.ts";

export type Settlement = ReturnType<x402HTTPClient["getPaymentSettleResponse"]>;

const http = new x402HTTPClient(new x402Client());

/** Returns the terms of a 402. @throws ServiceError if it has none in x402 version 2 */
export const termsOf = (headers: Headers): PaymentRequired =>
  decoded("the service answered 402 without x402 terms.", () => http.getPaymentRequiredResponse((n) => headers.get(n)));

/** Returns the settlement in a response. @throws ServiceError if it has none */
export const settlementOf = (headers: Headers): Settlement =>
  decoded("the service did not report the settlement.", () => http.getPaymentSettleResponse((n) => headers.get(n)));

/** Signs exactly this offer, without its extensions, and returns the header with the payment. */
export async function sign(
  payer: LocalAccount,
  { x402Version, resource }: PaymentRequired,
  offer: Offer,
): Promise<Record<string, string>> {
  const client = new x402Client()
    .register("eip155:8453", new ExactEvmScheme(payer))
    .setSpendControls({ maxAmountPerPayment: `$${formatUsd(amountOf(offer))}` });
  return http.encodePaymentSignatureHeader(
    await client.createPaymentPayload({ x402Version, resource, accepts: [offer] }),
  );
}

function decoded<T>(fault: string, decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new ServiceError(fault, { cause });
  }
}

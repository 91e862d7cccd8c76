import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import { toBase64Json } from "./base64-json.ts";
import type { PresentedPayment } from "./scheme.ts";

/** A payment that was taken, and whose client is not told yet that it has settled. */
export interface Pending {
  readonly payment: PresentedPayment;
  readonly network: Network;
  /** Null if it is not known, or may still change. */
  readonly transaction: Hex | null;
  readonly message: string;
}

/**
 * The headers with x402's own word for that, `settlement_pending`: no refusal, so a client that reads it sends the same
 * payment again. (x402, settlement response; its stock server takes the word from facilitators in the same form.)
 */
export function settlementPending({
  payment,
  network,
  transaction,
  message,
}: Pending): Readonly<Record<string, string>> {
  const isOld = payment.version === "v1";
  const header = toBase64Json({
    success: false,
    errorReason: "settlement_pending",
    errorMessage: message,
    transaction: transaction ?? "",
    network: isOld ? NETWORKS[network].key : network,
    payer: payment.authorization.from,
  });
  return { "payment-response": header, ...(isOld ? { "x-payment-response": header } : {}) };
}

import { z } from "zod";
import type { PendingPayment } from "./pending-payments.ts";

const PAYMENT = z.object({
  payload: z.object({
    authorization: z.object({ from: z.string(), nonce: z.string(), validBefore: z.string().regex(/^\d{1,20}$/) }),
  }),
});

/** The authorization (EIP-3009) in a payment. */
export interface Carried {
  readonly network: string;
  readonly from: string;
  readonly nonce: string;
  /** Unix seconds. It settles only in a block before this time. */
  readonly validBefore: bigint;
}

/** Returns the authorization in a stored payment. */
export function carriedBy({ headers, network }: Pick<PendingPayment, "headers" | "network">): Carried {
  const header = atob(headers["PAYMENT-SIGNATURE"] ?? "");
  const { from, nonce, validBefore } = PAYMENT.parse(JSON.parse(header)).payload.authorization;
  return { network, from, nonce, validBefore: BigInt(validBefore) };
}

/** Formats Unix seconds for people. */
export const utcTime = (seconds: bigint): string => new Date(Number(seconds) * 1_000).toISOString();

import { z } from "zod";
import type { PendingPayment } from "./pending-payments.ts";
import { type Service, ServiceError } from "./service.ts";
import { type Asked, readSettlement } from "./settlement.ts";

const PAYMENT = z.object({
  payload: z.object({
    authorization: z.object({ from: z.string(), nonce: z.string(), validBefore: z.string() }),
  }),
});

/** The authorization that a kept payment carries. */
function carriedBy({ headers, network }: PendingPayment): Asked {
  const header = atob(headers["PAYMENT-SIGNATURE"] ?? "");
  const { from, nonce, validBefore } = PAYMENT.parse(JSON.parse(header)).payload.authorization;
  return { network, from, nonce, valid_before: validBefore };
}

/**
 * Why no second payment may be signed yet, although the service has refused the first: the chain shows that it has been
 * charged or still can be, or cannot be asked. Null once it is over, and for a service that does not tell.
 */
export async function whyNotAgain(service: Service, payment: PendingPayment): Promise<string | null> {
  const settlement = await readSettlement(service, carriedBy(payment)).catch((error: unknown) => {
    if (error instanceof ServiceError) return error;
    throw error;
  });
  if (settlement instanceof ServiceError)
    return / answered 404/.test(settlement.message) ? null : `what became of it cannot be read: ${settlement.message}`;
  const { status, window, means } = settlement;
  const isOver = status === "pending" ? window === "closed" : ["expired", "canceled", "replaced"].includes(status);
  return isOver ? null : `the service refused it, and says of the chain: ${means}`;
}

import { z } from "zod";
import type { PendingPayment } from "./pending-payments.ts";
import { type Service, ServiceError } from "./service.ts";
import { readSettlement, type Settlement } from "./settlement.ts";

/** The state of a signed payment on the chain. Only a payment that is permanently over may be followed by another. */
export type SignedPaymentState =
  | { readonly type: "over" }
  | { readonly type: "open"; readonly why: string }
  | { readonly type: "charged"; readonly why: string };

/** Never throws for a bad response: a state that cannot be read is open. */
export type AskPaymentState = (carried: Carried) => Promise<SignedPaymentState>;

const MOST_SHOWN = 500;

/** Asks the service. Its response is trusted if it is consistent with itself and with the question. */
export const askService =
  (service: Service): AskPaymentState =>
  async (carried) => {
    const settlement = await settlementBy(service, carried);
    if (settlement instanceof ServiceError)
      return { type: "open", why: `its status cannot be read: ${settlement.message.slice(0, MOST_SHOWN)}` };
    const means = `the service reports about the chain: ${settlement.means.slice(0, MOST_SHOWN)}`;
    if (settlement.status === "settled") return { type: "charged", why: means };
    if (!isOver(settlement)) return { type: "open", why: means };
    const inconsistency = inconsistencyOf(settlement, carried);
    return inconsistency === null ? { type: "over" } : { type: "open", why: inconsistency };
  };

/** Returns the service's statement on an authorization, or the error if there is none. */
export const settlementBy = (
  service: Service,
  { network, from, nonce, validBefore }: Carried,
): Promise<Settlement | ServiceError> =>
  readSettlement(service, { network, from, nonce, valid_before: String(validBefore) }).catch((error: unknown) => {
    if (error instanceof ServiceError) return error;
    throw error;
  });

/** Unused and out of its window is not enough: until a final block shows that, a reorganization may still settle it. */
const isOver = ({ status, final }: Settlement): boolean =>
  final && (status === "expired" || status === "canceled" || status === "replaced");

/** A cache in between, or a fault of the service, may have answered a different question. */
function inconsistencyOf(shown: Settlement, { from, nonce, validBefore }: Carried): string | null {
  const isAbout = isSameHex(shown.from, from) && isSameHex(shown.nonce, nonce);
  if (!isAbout) return "the service's answer is about a different authorization.";
  if (shown.status !== "expired") return null;
  const end = Date.parse(shown.final_block?.time ?? "");
  if (shown.valid_before !== String(validBefore) || !(end >= Number(validBefore) * 1_000))
    return "the service calls it expired, but names no final block that shows it.";
  // Before the end by our clock, no final block can be after it, because final blocks are about 15 minutes old.
  return Date.now() < Number(validBefore) * 1_000 ? "the service calls it expired before its end." : null;
}

const isSameHex = (one: string | undefined, other: string): boolean => one?.toLowerCase() === other.toLowerCase();

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

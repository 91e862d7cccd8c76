import type { Diagnostic } from "./schemas.ts";

/** The reasons for which the gate itself refuses a payment. */
export type RefusedFor =
  | "early"
  | "expired"
  | "valid for too long"
  | "unsigned"
  | "undeployed"
  | "short of funds"
  | "consumed";

/** Why a payment is refused, for people and for machines. */
export interface Refusal {
  readonly error: string;
  /** The code of x402 or of the scheme; absent if the authorization is spent. */
  readonly code?: string;
  /** The gate's own reason, for which the scheme has the code. */
  readonly kind?: RefusedFor;
  /** A new signature by default. */
  readonly retry?: Diagnostic["retry"];
  /** The seconds to wait first. */
  readonly after?: number;
}

export const diagnosticOf = ({ code = "invalid_transaction_state", retry = "new", after }: Refusal): Diagnostic => ({
  code,
  retry,
  ...(after === undefined ? {} : { after }),
});

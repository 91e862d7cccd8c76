import type { FieldError } from "../platform/http/schema.ts";

/** What helps a client that was refused: nothing, the same request again, or a new signature. */
export type Retry = "never" | "same" | "new";

/** What the gate itself refuses a payment for. */
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
  /** x402's or the scheme's; without one, the authorization is spent. */
  readonly code?: string;
  /** Which of the gate's own refusals it is: its scheme has the code. */
  readonly kind?: RefusedFor;
  /** A new signature by default. */
  readonly retry?: Retry;
  /** The seconds to wait first. */
  readonly after?: number;
}

/** The extension of a 402 that says why it was sent. */
export interface Diagnostic {
  readonly code: string;
  readonly retry: Retry;
  readonly after?: number;
  /** What is wrong with the body. */
  readonly errors?: readonly FieldError[];
}

export const diagnosticOf = ({ code = "invalid_transaction_state", retry = "new", after }: Refusal): Diagnostic => ({
  code,
  retry,
  ...(after === undefined ? {} : { after }),
});

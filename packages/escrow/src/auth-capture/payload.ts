import type { Hex } from "viem";
import type { Authorization } from "../authorization.ts";
import type { ContestTerms } from "../contest-terms.ts";
import { readAuthorization, readSignature } from "../payment-header.ts";
import type { PaymentInfo } from "../payment-info.ts";
import { FEE_BPS, type Offer } from "../terms.ts";
import { Malformed, record, unlessMalformed, whole } from "../wire-fields.ts";
import { refusal } from "./refusal.ts";

/** The requirements that the client claims to have accepted, as in the header. */
export interface ClaimedRequirements {
  readonly scheme?: unknown;
  readonly network?: unknown;
  readonly amount?: unknown;
  readonly asset?: unknown;
  readonly payTo?: unknown;
  readonly extra?: unknown;
}

/** The `payload` of an "auth-capture" payment; none of it has been verified yet. */
export interface AuthCapturePayload {
  /** Null for a Permit2 authorization, which this service does not accept. */
  readonly authorization: Authorization | null;
  readonly signature: Hex;
  readonly salt: bigint;
  /** The nonce in the salt's preimage under a policy; undefined if the offer has none. */
  readonly saltNonce?: bigint | undefined;
}

/** An "auth-capture" payment as in its header; none of it has been verified yet. */
export interface AuthCapturePayment extends AuthCapturePayload {
  readonly accepted: ClaimedRequirements;
}

/**
 * Parses the `payload` of a decoded header. It has no terms: `termsOf` rebuilds them.
 * @param contest the contest that the offer binds the salt to, if any
 * @returns `malformed`, beginning with the scheme's code, if it is invalid
 */
export function parseAuthCapture(
  payload: unknown,
  contest?: ContestTerms,
): AuthCapturePayload | { readonly malformed: string } {
  const read = unlessMalformed(() => readPayload(record(payload, "payload"), contest));
  return "malformed" in read ? { malformed: refusal("payload_format", read.malformed) } : read;
}

function readPayload(payload: Record<string, unknown>, contest: ContestTerms | undefined): AuthCapturePayload {
  if (payload.saltNonce !== undefined && contest === undefined)
    throw new Malformed("payload.saltNonce is set, but the offer binds the salt to nothing");
  const isPermit2 = payload.authorization === undefined && payload.permit2Authorization !== undefined;
  if (isPermit2) record(payload.permit2Authorization, "payload.permit2Authorization");
  return {
    authorization: isPermit2 ? null : readAuthorization(payload.authorization),
    signature: readSignature(payload.signature),
    salt: whole(payload.salt, 256, "payload.salt"),
    saltNonce: payload.saltNonce === undefined ? undefined : whole(payload.saltNonce, 256, "payload.saltNonce"),
  };
}

/** Returns both deadlines of the terms that a client accepted, in unix seconds; 0 for anything but a whole number. */
export function deadlinesOf({ extra }: Pick<ClaimedRequirements, "extra">) {
  const { captureDeadline, refundDeadline } = (extra ?? {}) as Record<string, unknown>;
  return { captureDeadline: seconds(captureDeadline), refundDeadline: seconds(refundDeadline) };
}

const seconds = (value: unknown): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value < 2 ** 48 ? value : 0;

/**
 * Returns the terms of a payment: our own constants, and from the client only its account, the end of its
 * authorization, its salt, and the two deadlines that it returns.
 */
export function termsOf(
  { authorization, salt, accepted }: AuthCapturePayment & { readonly authorization: Authorization },
  { escrow, merchant, price }: Offer,
): PaymentInfo {
  const { captureDeadline, refundDeadline } = deadlinesOf(accepted);
  return {
    operator: escrow.address,
    payer: authorization.from,
    receiver: merchant,
    token: escrow.usdc.address,
    maxAmount: price,
    preApprovalExpiry: Number(authorization.validBefore),
    authorizationExpiry: captureDeadline,
    refundExpiry: refundDeadline,
    minFeeBps: FEE_BPS,
    maxFeeBps: FEE_BPS,
    feeReceiver: escrow.feeReceiver,
    salt,
  };
}

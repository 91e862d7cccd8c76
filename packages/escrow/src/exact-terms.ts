import { getAddress, type Hex, isAddressEqual } from "viem";
import type { Authorization } from "./authorization.ts";
import { type DecodedHeader, readAuthorization, readSignature } from "./payment-header.ts";
import {
  CLOCK_SKEW_SECONDS,
  commonRequirements,
  LEAST_SECONDS_VALID,
  MAX_TIMEOUT_SECONDS,
  mismatched,
  networkOf,
  type Offer,
} from "./terms.ts";
import { record, unlessMalformed } from "./wire-fields.ts";

/** The x402 scheme of an ordinary payment, directly to the merchant. */
export const EXACT = "exact";

/** The protection that a buyer gives up, for clients that show terms. */
const LOSES = "Paid to the merchant immediately, without a hold, an arbiter's evaluation, or a refund.";

/** Returns the x402 version 2 terms of the same sale without the escrow. */
export const exactRequirements = (offer: Offer) => ({
  scheme: EXACT,
  ...commonRequirements(offer),
  extra: { name: offer.escrow.usdc.name, version: offer.escrow.usdc.version, withoutEscrow: LOSES },
});

/** An ordinary payment that matches the offer; its signature has not been checked yet. */
export interface ExactPayment {
  readonly authorization: Authorization;
  readonly signature: Hex;
}

/** Parses an ordinary payment and compares it with the offer. An expired one may have been settled in time. */
export function readExact(
  { header, accepted, payload }: DecodedHeader,
  offer: Offer,
  nowMs: number,
): ExactPayment | { readonly malformed: string } | { readonly refused: string } {
  const read = unlessMalformed(() => {
    const given = record(payload, "payload");
    return { authorization: readAuthorization(given.authorization), signature: readSignature(given.signature) };
  });
  if ("malformed" in read)
    return { malformed: `${header} is not an x402 version 2 "${EXACT}" payment: ${read.malformed}.` };
  const refused = mismatch(accepted, read.authorization, offer, nowMs);
  return refused === null ? read : { refused };
}

// biome-ignore lint/complexity/useMaxParams: the parts of one comparison
function mismatch(
  { network }: DecodedHeader["accepted"],
  { to, value, validAfter, validBefore }: Authorization,
  { escrow, merchant, price }: Offer,
  nowMs: number,
): string | null {
  if (network !== undefined && network !== networkOf(escrow))
    return mismatched("accepted.network", network, networkOf(escrow));
  if (!isAddressEqual(to, merchant)) return mismatched("authorization.to", to, getAddress(merchant));
  if (value !== price) return mismatched("authorization.value", value, price);
  const now = Math.floor(nowMs / 1000);
  if (validAfter > now) return mismatched("authorization.validAfter", validAfter, `at most ${now}`);
  const latest = now + MAX_TIMEOUT_SECONDS + CLOCK_SKEW_SECONDS;
  if (validBefore > latest) return mismatched("authorization.validBefore", validBefore, `at most ${latest}`);
  return null;
}

/** Returns the reason why it can no longer be mined in time; null if it can. */
export function tooLate({ validBefore }: Authorization, nowMs: number): string | null {
  const least = Math.ceil(nowMs / 1000) + LEAST_SECONDS_VALID;
  return validBefore >= least ? null : mismatched("authorization.validBefore", validBefore, `at least ${least}`);
}

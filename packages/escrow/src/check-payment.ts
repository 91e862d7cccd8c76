import { isAddressEqual } from "viem";
import { authorizationOf } from "./authorization.ts";
import { isBound, refundSecondsBeyond } from "./contest-terms.ts";
import type { PresentedPayment } from "./payment-header.ts";
import {
  AUTHORIZATION_SECONDS,
  CLOCK_SKEW_SECONDS,
  FEE_BPS,
  LEAST_AUTHORIZATION_SECONDS,
  MAX_TIMEOUT_SECONDS,
  mismatched,
  networkOf,
  type Offer,
  SCHEME,
} from "./terms.ts";

/**
 * Returns the reason why a payment does not match the offer, with the expected value; null if it matches. Only an upper
 * bound depends on the time, so a payment accepted once remains accepted.
 */
export const mismatch = (payment: PresentedPayment, offer: Offer, nowMs: number): string | null =>
  wrongScheme(payment, offer) ??
  wrongTerms(payment, offer) ??
  wrongExpiry(payment, offer, nowMs) ??
  wrongSalt(payment, offer) ??
  wrongAuthorization(payment, offer);

function wrongScheme({ scheme, network }: PresentedPayment, { escrow }: Offer): string | null {
  if (scheme !== undefined && scheme !== SCHEME) return mismatched("accepted.scheme", scheme, SCHEME);
  if (network !== undefined && network !== networkOf(escrow))
    return mismatched("accepted.network", network, networkOf(escrow));
  return null;
}

function wrongTerms({ info }: PresentedPayment, { escrow, merchant, price }: Offer): string | null {
  const addresses = [
    ["operator", escrow.address],
    ["receiver", merchant],
    ["token", escrow.usdc.address],
    ["feeReceiver", escrow.feeReceiver],
  ] as const;
  for (const [field, wanted] of addresses) {
    if (!isAddressEqual(info[field], wanted)) return mismatched(`paymentInfo.${field}`, info[field], wanted);
  }
  const numbers = [
    ["maxAmount", price],
    ["minFeeBps", FEE_BPS],
    ["maxFeeBps", FEE_BPS],
  ] as const;
  for (const [field, wanted] of numbers) {
    if (info[field] !== wanted) return mismatched(`paymentInfo.${field}`, info[field], wanted);
  }
  return null;
}

function wrongExpiry({ info }: PresentedPayment, { contest }: Offer, nowMs: number): string | null {
  const { preApprovalExpiry, authorizationExpiry, refundExpiry } = info;
  const latest = Math.ceil(nowMs / 1000) + MAX_TIMEOUT_SECONDS + CLOCK_SKEW_SECONDS;
  if (preApprovalExpiry > latest)
    return mismatched("paymentInfo.preApprovalExpiry", preApprovalExpiry, `at most ${latest}`);
  const [least, most] = [preApprovalExpiry + LEAST_AUTHORIZATION_SECONDS, preApprovalExpiry + AUTHORIZATION_SECONDS];
  if (authorizationExpiry < least || authorizationExpiry > most) {
    return mismatched("paymentInfo.authorizationExpiry", authorizationExpiry, `${least} to ${most}`);
  }
  if (contest !== undefined) {
    const offered = authorizationExpiry + refundSecondsBeyond(contest);
    return refundExpiry === offered ? null : mismatched("paymentInfo.refundExpiry", refundExpiry, offered);
  }
  const end = authorizationExpiry + AUTHORIZATION_SECONDS;
  if (refundExpiry < authorizationExpiry || refundExpiry > end) {
    return mismatched("paymentInfo.refundExpiry", refundExpiry, `${authorizationExpiry} to ${end}`);
  }
  return null;
}

/** With a different salt, the payer could later claim that other conditions were offered. */
function wrongSalt({ info, saltNonce = 0n }: PresentedPayment, { contest }: Offer): string | null {
  if (contest === undefined || isBound(info, { ...contest, saltNonce })) return null;
  return "The payment does not match the offer: paymentInfo.salt is not derived from extra.policy and payload.saltNonce.";
}

/** The contract derives the authorization from the terms, so a different one was signed for something else. */
function wrongAuthorization({ info, authorization }: PresentedPayment, { escrow }: Offer): string | null {
  const { message } = authorizationOf(escrow, info);
  for (const [field, wanted] of Object.entries(message)) {
    const got = authorization[field as keyof typeof message];
    if (String(got).toLowerCase() !== String(wanted).toLowerCase())
      return mismatched(`authorization.${field}`, got, wanted);
  }
  return null;
}

import { isAddressEqual } from "viem";
import { authorizationOf } from "./authorization.ts";
import { isBound, refundSecondsBeyond } from "./contest-terms.ts";
import type { PresentedPayment } from "./payment-header.ts";
import { AUTHORIZATION_SECONDS, FEE_BPS, MAX_TIMEOUT_SECONDS, networkOf, type Offer, SCHEME } from "./terms.ts";

/** How far apart the clocks of a merchant's machines may be, in seconds. */
const CLOCK_SKEW_SECONDS = 30;
/** The least time an arbiter must have for the release, in seconds: an hour less than is offered. */
const LEAST_AUTHORIZATION_SECONDS = AUTHORIZATION_SECONDS - 3600;

/**
 * Why a payment does not match the offer, and what would; null if it does. Only an upper bound depends on the time, so
 * a payment accepted once stays accepted.
 */
export const mismatch = (payment: PresentedPayment, offer: Offer, nowMs: number): string | null =>
  wrongScheme(payment, offer) ??
  wrongTerms(payment, offer) ??
  wrongExpiry(payment, offer, nowMs) ??
  wrongSalt(payment, offer) ??
  wrongAuthorization(payment, offer);

function wrongScheme({ scheme, network }: PresentedPayment, { escrow }: Offer): string | null {
  if (scheme !== undefined && scheme !== SCHEME) return says("accepted.scheme", scheme, SCHEME);
  if (network !== undefined && network !== networkOf(escrow))
    return says("accepted.network", network, networkOf(escrow));
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
    if (!isAddressEqual(info[field], wanted)) return says(`paymentInfo.${field}`, info[field], wanted);
  }
  const numbers = [
    ["maxAmount", price],
    ["minFeeBps", FEE_BPS],
    ["maxFeeBps", FEE_BPS],
  ] as const;
  for (const [field, wanted] of numbers) {
    if (info[field] !== wanted) return says(`paymentInfo.${field}`, info[field], wanted);
  }
  return null;
}

function wrongExpiry({ info }: PresentedPayment, { contest }: Offer, nowMs: number): string | null {
  const { preApprovalExpiry, authorizationExpiry, refundExpiry } = info;
  const latest = Math.ceil(nowMs / 1000) + MAX_TIMEOUT_SECONDS + CLOCK_SKEW_SECONDS;
  if (preApprovalExpiry > latest) return says("paymentInfo.preApprovalExpiry", preApprovalExpiry, `at most ${latest}`);
  const [least, most] = [preApprovalExpiry + LEAST_AUTHORIZATION_SECONDS, preApprovalExpiry + AUTHORIZATION_SECONDS];
  if (authorizationExpiry < least || authorizationExpiry > most) {
    return says("paymentInfo.authorizationExpiry", authorizationExpiry, `${least} to ${most}`);
  }
  if (contest !== undefined) {
    const offered = authorizationExpiry + refundSecondsBeyond(contest);
    return refundExpiry === offered ? null : says("paymentInfo.refundExpiry", refundExpiry, offered);
  }
  const end = authorizationExpiry + AUTHORIZATION_SECONDS;
  if (refundExpiry < authorizationExpiry || refundExpiry > end) {
    return says("paymentInfo.refundExpiry", refundExpiry, `${authorizationExpiry} to ${end}`);
  }
  return null;
}

/** With another salt the payer could later say that other conditions were offered. */
function wrongSalt({ info, saltNonce = 0n }: PresentedPayment, { contest }: Offer): string | null {
  if (contest === undefined || isBound(info, { ...contest, saltNonce })) return null;
  return "The payment does not match the offer: paymentInfo.salt is not made of extra.policy and payload.saltNonce.";
}

/** The contract builds the authorization from the terms: a different one was signed over something else. */
function wrongAuthorization({ info, authorization }: PresentedPayment, { escrow }: Offer): string | null {
  const { message } = authorizationOf(escrow, info);
  for (const [field, wanted] of Object.entries(message)) {
    const got = authorization[field as keyof typeof message];
    if (String(got).toLowerCase() !== String(wanted).toLowerCase()) return says(`authorization.${field}`, got, wanted);
  }
  return null;
}

const says = (field: string, got: unknown, wanted: unknown): string =>
  `The payment does not match the offer: ${field} is ${String(got).slice(0, 100)}, expected ${String(wanted)}.`;

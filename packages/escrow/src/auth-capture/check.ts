import { canonical } from "../canonical.ts";
import { isBound, refundSecondsBeyond } from "../contest-terms.ts";
import { payerAgnosticNonce } from "../payment-info.ts";
import { AUTHORIZATION_SECONDS, networkOf, type Offer, placeOf } from "../terms.ts";
import { type AuthCapturePayment, deadlinesOf, termsOf } from "./payload.ts";
import { refusal } from "./refusal.ts";
import { AUTH_CAPTURE, requirements } from "./terms.ts";

/** How far apart the clocks of a merchant's machines may be, in seconds. */
const CLOCK_SKEW_SECONDS = 30;
/** The least time an arbiter must have for the capture, in seconds: an hour less than is offered. */
const LEAST_AUTHORIZATION_SECONDS = AUTHORIZATION_SECONDS - 3600;
/** What a hold needs to be mined, in seconds. */
const MINED_WITHIN_SECONDS = 6;

/** Why Permit2 is refused. */
export const NOT_EIP_3009 = refusal(
  "payload_method_mismatch",
  "the payload has a permit2Authorization; expected an EIP-3009 authorization.",
);

type Authorized = AuthCapturePayment & { readonly authorization: NonNullable<AuthCapturePayment["authorization"]> };

export interface Checked {
  readonly payment: AuthCapturePayment;
  readonly offer: Offer;
  readonly nowMs: number;
  /**
   * Whether a payment whose time is over is refused. What is held already stays a purchase: leave its expiries out. The
   * other checks never refuse later what they once accepted.
   */
  readonly checksExpiry: boolean;
}

/**
 * Why a payment does not match the offer, beginning with the scheme's code; null if it does. Checks are in the field's
 * order; the signature and the simulation come after them.
 */
export function mismatch(checked: Checked): string | null {
  const { payment, offer } = checked;
  const wrong = wrongScheme(payment, offer) ?? wrongExtra(checked);
  if (wrong !== null) return wrong;
  const { authorization } = payment;
  if (authorization === null) return NOT_EIP_3009;
  const authorized = { ...payment, authorization };
  return wrongTimes(authorized, checked) ?? wrongTransfer(authorized, offer) ?? wrongNonce(authorized, offer);
}

function wrongScheme({ accepted }: AuthCapturePayment, { escrow }: Offer): string | null {
  if (accepted.scheme !== AUTH_CAPTURE)
    return refusal("scheme", says("accepted.scheme", accepted.scheme, AUTH_CAPTURE));
  if (accepted.network !== networkOf(escrow))
    return refusal("network_mismatch", says("accepted.network", accepted.network, networkOf(escrow)));
  return null;
}

/** All of it as offered, but for how long ago the deadlines were; a client sends it back as it came. */
function wrongExtra({ payment: { accepted }, offer, nowMs }: Checked): string | null {
  const { captureDeadline, refundDeadline, ...ours } = requirements(offer, nowMs).extra;
  const { extra } = accepted;
  if (typeof extra !== "object" || extra === null || Array.isArray(extra))
    return refusal("extra", says("accepted.extra", extra, "the offer's"));
  const given = extra as Record<string, unknown>;
  for (const [field, wanted] of Object.entries(ours))
    if (!isSame(given[field], wanted)) return refusal("extra", says(`accepted.extra.${field}`, given[field], wanted));
  const added = Object.keys(given).find((field) => !(field in ours) && !/^(capture|refund)Deadline$/.test(field));
  if (added !== undefined)
    return refusal("extra", says(`accepted.extra.${added}`, given[added], "none: it was not offered"));
  const latest = captureDeadline + CLOCK_SKEW_SECONDS;
  const claimed = deadlinesOf(accepted);
  if (claimed.captureDeadline === 0 || claimed.captureDeadline > latest)
    return refusal("extra", says("accepted.extra.captureDeadline", given.captureDeadline, `at most ${latest}`));
  const refundDeadlineOffered = claimed.captureDeadline + beyond(offer);
  if (claimed.refundDeadline === 0 || claimed.refundDeadline > refundDeadlineOffered)
    return refusal("extra", says("accepted.extra.refundDeadline", given.refundDeadline, refundDeadlineOffered));
  return null;
}

/** How much later than the capture deadline an offer's refund deadline is, in seconds. */
const beyond = ({ contest }: Offer): number => (contest === undefined ? 0 : refundSecondsBeyond(contest));

const isSame = (given: unknown, wanted: string | number | object): boolean =>
  given === wanted ||
  (typeof wanted === "object" && canonical(given) === canonical(wanted)) ||
  (typeof given === "string" && given.toLowerCase() === String(wanted).toLowerCase() && /^0x/.test(given));

function wrongTimes({ accepted, authorization }: Authorized, { offer, nowMs, checksExpiry }: Checked): string | null {
  const { captureDeadline, refundDeadline } = deadlinesOf(accepted);
  const { validAfter, validBefore } = authorization;
  const now = Math.floor(nowMs / 1000);
  const soonest = now + MINED_WITHIN_SECONDS;
  if (checksExpiry && captureDeadline <= soonest)
    return refusal(
      "capture_deadline_expired",
      says("accepted.extra.captureDeadline", captureDeadline, `after ${soonest}`),
    );
  const latest = captureDeadline - LEAST_AUTHORIZATION_SECONDS;
  if (refundDeadline < captureDeadline + beyond(offer) || validBefore > BigInt(latest))
    return refusal(
      "deadline_ordering",
      `authorization.validBefore is ${validBefore}, captureDeadline ${captureDeadline}, refundDeadline ${refundDeadline}; ` +
        `expected validBefore at most ${latest}, and both deadlines as offered.`,
    );
  if (checksExpiry && validBefore <= BigInt(soonest))
    return refusal("authorization_expired", says("authorization.validBefore", validBefore, `after ${soonest}`));
  if (validAfter > BigInt(now))
    return refusal("authorization_not_yet_valid", says("authorization.validAfter", validAfter, 0));
  return null;
}

function wrongTransfer({ accepted, authorization }: Authorized, { escrow, price }: Offer): string | null {
  if (!isSame(authorization.to, escrow.collector))
    return refusal("token_collector_mismatch", says("authorization.to", authorization.to, escrow.collector));
  if (accepted.amount !== undefined && accepted.amount !== String(price))
    return refusal("amount_mismatch", says("accepted.amount", accepted.amount, price));
  return authorization.value === price
    ? null
    : refusal("amount_mismatch", says("authorization.value", authorization.value, price));
}

/** Every term that was signed is in the nonce, so another nonce is another term. */
function wrongNonce(payment: Authorized, offer: Offer): string | null {
  const { accepted, authorization } = payment;
  const stated = [
    ["payTo", offer.merchant],
    ["asset", offer.escrow.usdc.address],
  ] as const;
  for (const [field, wanted] of stated) {
    const given = accepted[field];
    if (given !== undefined && !isSame(given, wanted))
      return refusal("nonce_mismatch", says(`accepted.${field}`, given, wanted));
  }
  const nonce = payerAgnosticNonce(placeOf(offer.escrow), termsOf(payment, offer));
  if (authorization.nonce !== nonce)
    return refusal(
      "nonce_mismatch",
      `${says("authorization.nonce", authorization.nonce, nonce)} It is the hash of the offer's terms with this payload's validBefore and salt.`,
    );
  const { contest } = offer;
  const { salt, saltNonce = 0n } = payment;
  if (contest !== undefined && !isBound({ salt }, { ...contest, saltNonce }))
    return refusal("nonce_mismatch", "payload.salt is not made of the offer's policy and payload.saltNonce.");
  return authorization.validAfter === 0n
    ? null
    : refusal(
        "signature",
        `${says("authorization.validAfter", authorization.validAfter, 0)} The collector redeems with 0.`,
      );
}

const says = (field: string, got: unknown, wanted: unknown): string =>
  `${field} is ${shown(got).slice(0, 100)}; expected ${shown(wanted)}.`;

const shown = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

import { type Address, type Hex, isAddressEqual, parseErc6492Signature } from "viem";
import { canonical } from "../canonical.ts";
import { isBound, refundSecondsBeyond } from "../contest-terms.ts";
import { payerAgnosticNonce } from "../payment-info.ts";
import { isWrapped } from "../signature-forms.ts";
import { CLOCK_SKEW_SECONDS, LEAST_AUTHORIZATION_SECONDS, networkOf, type Offer, placeOf } from "../terms.ts";
import { type AuthCapturePayment, deadlinesOf, termsOf } from "./payload.ts";
import { refusal } from "./refusal.ts";
import { AUTH_CAPTURE, requirements } from "./terms.ts";

/** The refusal of Permit2. */
export const NOT_EIP_3009 = refusal(
  "payload_method_mismatch",
  "the payload has a permit2Authorization; expected an EIP-3009 authorization.",
);

type Authorized = AuthCapturePayment & { readonly authorization: NonNullable<AuthCapturePayment["authorization"]> };

interface Checked {
  readonly payment: AuthCapturePayment;
  readonly offer: Offer;
  readonly nowMs: number;
}

/**
 * Returns the reason why a payment does not match the offer, beginning with the scheme's code; null if it matches.
 * Checks are in the order of the specification's fields; the signature and the simulation follow. A payment that was
 * held in time remains a purchase, so a payment that passes these checks passes them forever. The hold refuses
 * an expired one.
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
    return refusal("scheme", mismatched("accepted.scheme", accepted.scheme, AUTH_CAPTURE));
  if (accepted.network !== networkOf(escrow))
    return refusal("network_mismatch", mismatched("accepted.network", accepted.network, networkOf(escrow)));
  return null;
}

/** Everything must be as offered, except for the age of the deadlines; a client returns `extra` unchanged. */
function wrongExtra({ payment: { accepted }, offer, nowMs }: Checked): string | null {
  const { captureDeadline, refundDeadline, ...ours } = requirements(offer, nowMs).extra;
  const { extra } = accepted;
  if (typeof extra !== "object" || extra === null || Array.isArray(extra))
    return refusal("extra", mismatched("accepted.extra", extra, "the offer's"));
  const given = extra as Record<string, unknown>;
  for (const [field, wanted] of Object.entries(ours))
    if (!isSame(given[field], wanted))
      return refusal("extra", mismatched(`accepted.extra.${field}`, given[field], wanted));
  const added = Object.keys(given).find((field) => !(field in ours) && !/^(capture|refund)Deadline$/.test(field));
  if (added !== undefined)
    return refusal("extra", mismatched(`accepted.extra.${added}`, given[added], "none, because it was not offered"));
  const latest = captureDeadline + CLOCK_SKEW_SECONDS;
  const claimed = deadlinesOf(accepted);
  if (claimed.captureDeadline === 0 || claimed.captureDeadline > latest)
    return refusal("extra", mismatched("accepted.extra.captureDeadline", given.captureDeadline, `at most ${latest}`));
  const refundDeadlineOffered = claimed.captureDeadline + beyond(offer);
  if (claimed.refundDeadline === 0 || claimed.refundDeadline > refundDeadlineOffered)
    return refusal("extra", mismatched("accepted.extra.refundDeadline", given.refundDeadline, refundDeadlineOffered));
  return null;
}

/** The distance from an offer's capture deadline to its refund deadline, in seconds. */
const beyond = ({ contest }: Offer): number => (contest === undefined ? 0 : refundSecondsBeyond(contest));

const isSame = (given: unknown, wanted: string | number | object): boolean =>
  given === wanted ||
  (typeof wanted === "object" && canonical(given) === canonical(wanted)) ||
  (typeof given === "string" && given.toLowerCase() === String(wanted).toLowerCase() && /^0x/.test(given));

function wrongTimes({ accepted, authorization }: Authorized, { offer, nowMs }: Checked): string | null {
  const { captureDeadline, refundDeadline } = deadlinesOf(accepted);
  const { validAfter, validBefore } = authorization;
  const latest = captureDeadline - LEAST_AUTHORIZATION_SECONDS;
  if (refundDeadline < captureDeadline + beyond(offer) || validBefore > BigInt(latest))
    return refusal(
      "deadline_ordering",
      `authorization.validBefore is ${validBefore}, captureDeadline ${captureDeadline}, refundDeadline ${refundDeadline}; ` +
        `expected validBefore at most ${latest}, and both deadlines as offered.`,
    );
  if (validAfter > BigInt(Math.floor(nowMs / 1000)))
    return refusal("authorization_not_yet_valid", mismatched("authorization.validAfter", validAfter, 0));
  return null;
}

function wrongTransfer({ accepted, authorization }: Authorized, { escrow, price }: Offer): string | null {
  if (!isSame(authorization.to, escrow.collector))
    return refusal("token_collector_mismatch", mismatched("authorization.to", authorization.to, escrow.collector));
  if (accepted.amount !== undefined && accepted.amount !== String(price))
    return refusal("amount_mismatch", mismatched("accepted.amount", accepted.amount, price));
  return authorization.value === price
    ? null
    : refusal("amount_mismatch", mismatched("authorization.value", authorization.value, price));
}

/** The nonce binds every signed term, so a different nonce means a different term. */
function wrongNonce(payment: Authorized, offer: Offer): string | null {
  const { accepted, authorization } = payment;
  const stated = [
    ["payTo", offer.merchant],
    ["asset", offer.escrow.usdc.address],
  ] as const;
  for (const [field, wanted] of stated) {
    const given = accepted[field];
    if (given !== undefined && !isSame(given, wanted))
      return refusal("nonce_mismatch", mismatched(`accepted.${field}`, given, wanted));
  }
  const nonce = payerAgnosticNonce(placeOf(offer.escrow), termsOf(payment, offer));
  if (authorization.nonce !== nonce)
    return refusal(
      "nonce_mismatch",
      `${mismatched("authorization.nonce", authorization.nonce, nonce)} It is the hash of the offer's terms with this payload's validBefore and salt.`,
    );
  const { contest } = offer;
  const { salt, saltNonce = 0n } = payment;
  if (contest !== undefined && !isBound({ salt }, { ...contest, saltNonce }))
    return refusal("nonce_mismatch", "payload.salt is not derived from the offer's policy and payload.saltNonce.");
  return authorization.validAfter === 0n
    ? null
    : refusal(
        "signature",
        `${mismatched("authorization.validAfter", authorization.validAfter, 0)} The collector redeems with 0.`,
      );
}

const mismatched = (field: string, got: unknown, wanted: unknown): string =>
  `${field} is ${shown(got).slice(0, 100)}; expected ${shown(wanted)}.`;

const shown = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

/**
 * Returns the reason why a signature may not be sent to the chain, beginning with the scheme's code; null if it may.
 * The collector makes the preparing call to whatever contract the payer names, on the sender's gas, so only known
 * factories are accepted.
 */
export function wrongFactory(signature: Hex, allowed: readonly Address[]): string | null {
  if (!isWrapped(signature)) return null;
  const factory = factoryOf(signature);
  if (factory === null) return refusal("signature", "the ERC-6492 signature cannot be decoded.");
  if (allowed.some((one) => isAddressEqual(one, factory))) return null;
  const accepted = allowed.length === 0 ? "none; deploy the wallet first" : allowed.join(", ");
  return refusal("erc6492_factory_not_allowed", `the wallet's factory is ${factory}; accepted: ${accepted}.`);
}

function factoryOf(signature: Hex): Address | null {
  try {
    return parseErc6492Signature(signature).address ?? null;
  } catch {
    return null;
  }
}

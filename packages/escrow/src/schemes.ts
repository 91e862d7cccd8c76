import type { Address, Hex } from "viem";
import * as authCapture from "./auth-capture/check.ts";
import { wrongFactory } from "./auth-capture/check.ts";
import { parseAuthCapture, termsOf } from "./auth-capture/payload.ts";
import { refusal, revertCode } from "./auth-capture/refusal.ts";
import { AUTH_CAPTURE, requirements as authCaptureRequirements } from "./auth-capture/terms.ts";
import * as commerce from "./check-payment.ts";
import type { BoundContest } from "./contest-terms.ts";
import type { PaymentHeaders } from "./envelope.ts";
import { type DecodedHeader, decodePaymentHeaders, parsePayload } from "./payment-header.ts";
import type { PaymentInfo } from "./payment-info.ts";
import type { RevertReason } from "./revert-reason.ts";
import { requirements as commerceRequirements, type EscrowFacts, mismatched, type Offer, SCHEME } from "./terms.ts";

/** A payment that matches an offer; its signature has not been checked yet. */
export interface Payment {
  readonly info: PaymentInfo;
  readonly signature: Hex;
  /** The contest that the payer may bring, as bound by its salt. */
  readonly contest?: BoundContest | undefined;
}

type Reading = Payment | { readonly malformed: string } | { readonly refused: string };

/** The differences between the schemes; everything else is shared. */
interface SchemeRules {
  readonly requirements: typeof requirements;
  /** Returns the terms that a header's payload was signed for, if they are the offer's. */
  readonly read: (header: DecodedHeader, offer: Offer, nowMs: number) => Reading;
  /** Whether the hold may deploy the payer's wallet by this signature (ERC-6492). */
  readonly deploys: (signature: Hex, allowed: readonly Address[]) => boolean;
  /** The error that the payer's wallet must be deployed first. */
  readonly undeployed: (payer: Address, allowed: readonly Address[]) => string;
  /** The error that the payer's signature is not over these terms. */
  readonly notSigned: (payer: Address) => string;
  /** The error of a contract that does not hold the payment. */
  readonly notHeld: (why: RevertReason) => string;
}

/** Returns the offer's contest, with the nonce in this payment's salt. */
const boundIn = (
  { contest }: Offer,
  { saltNonce }: { readonly saltNonce?: bigint | undefined },
): BoundContest | undefined =>
  contest === undefined || saltNonce === undefined ? undefined : { ...contest, saltNonce };

const deployFirst = (payer: Address): string =>
  `the wallet ${payer} is not deployed, so it has no code that could check its signature. Deploy the wallet first, then sign again`;

const COMMERCE: SchemeRules = {
  requirements: commerceRequirements,
  read({ header, accepted, payload }, offer, nowMs) {
    const presented = parsePayload(payload);
    if ("malformed" in presented)
      return { malformed: `${header} is not an x402 version 2 "${SCHEME}" payment: ${presented.malformed}.` };
    const { scheme, network } = accepted;
    const refused = commerce.mismatch({ ...presented, scheme, network }, offer, nowMs);
    if (refused !== null) return { refused };
    const { info, signature } = presented;
    return { info, signature, contest: boundIn(offer, presented) };
  },
  // The contract makes no preparing call.
  deploys: () => false,
  undeployed: (payer) => `The payment cannot be held: ${deployFirst(payer)}.`,
  notSigned: (payer) => `${payer} did not sign these terms.`,
  notHeld: ({ text }) => `The payment cannot be held: ${text}.`,
};

const OPERATOR: SchemeRules = {
  requirements: authCaptureRequirements,
  read({ accepted, payload }, offer, nowMs) {
    const presented = parseAuthCapture(payload, offer.contest);
    if ("malformed" in presented) return presented;
    const payment = { ...presented, accepted };
    const refused = authCapture.mismatch({ payment, offer, nowMs });
    if (refused !== null) return { refused };
    const { authorization, signature } = payment;
    if (authorization === null) throw new Error("A payment without an authorization matched an offer.");
    return { info: termsOf({ ...payment, authorization }, offer), signature, contest: boundIn(offer, payment) };
  },
  deploys: (signature, allowed) => wrongFactory(signature, allowed) === null,
  undeployed(payer, allowed) {
    const instead =
      allowed.length === 0 ? "" : `, or pay from a wallet of one of these factories: ${allowed.join(", ")}`;
    return refusal("erc6492_factory_not_allowed", `${deployFirst(payer)}${instead}.`);
  },
  notSigned: (payer) => refusal("signature", `${payer} did not sign these terms.`),
  notHeld: (why) => refusal(revertCode(why), `the payment cannot be held: ${why.text}.`),
};

const SCHEMES: Readonly<Record<EscrowFacts["scheme"], SchemeRules>> = { [AUTH_CAPTURE]: OPERATOR, [SCHEME]: COMMERCE };

/** Returns the rules for a contract's payments. */
export const rulesOf = ({ scheme }: Pick<EscrowFacts, "scheme">): SchemeRules => SCHEMES[scheme];

/**
 * Returns the x402 version 2 payment requirements of an offer, in the scheme that pays its contract.
 * @param nowMs the start of the expiries, in milliseconds; they are absolute unix seconds, rounded up
 */
export const requirements = (
  offer: Offer,
  nowMs: number,
): ReturnType<typeof commerceRequirements> | ReturnType<typeof authCaptureRequirements> =>
  rulesOf(offer.escrow).requirements(offer, nowMs);

/**
 * Reads the payment headers of a request, and finds the offer that the payment is for. A "commerce" client may omit the
 * accepted terms. Null without a payment.
 */
export function readPayment(
  headers: PaymentHeaders,
  offers: readonly Offer[],
  nowMs: number,
):
  | (Payment & Pick<DecodedHeader, "resource"> & { readonly offer: Offer })
  | { readonly malformed: string }
  | { readonly refused: string }
  | null {
  const decoded = decodePaymentHeaders(headers);
  if (decoded === null || !("payload" in decoded)) return decoded;
  const { scheme = SCHEME } = decoded.accepted;
  const offer = offers.find(({ escrow }) => escrow.scheme === scheme);
  if (offer === undefined) {
    const offered = offers.map(({ escrow }) => escrow.scheme).join(" or ");
    return { refused: mismatched("accepted.scheme", scheme, offered) };
  }
  const read = rulesOf(offer.escrow).read(decoded, offer, nowMs);
  return "info" in read ? { ...read, offer, resource: decoded.resource } : read;
}

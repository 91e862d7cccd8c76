import { randomBytes } from "node:crypto";
import { type Address, getAddress, type Hex, isAddress, isAddressEqual, toHex, zeroAddress } from "viem";
import type { Authorization } from "../../../escrow/src/authorization.ts";
import { boundSalt } from "../../../escrow/src/contest-terms.ts";
import { type PaymentInfo, payerAgnosticNonce, paymentId } from "../../../escrow/src/payment-info.ts";
import type { Terms } from "./terms.ts";

/** The x402 scheme whose payments an escrow holds. */
export const AUTH_CAPTURE = "auth-capture";

interface Deployment {
  readonly escrow: Address;
  /** Collects by EIP-3009. */
  readonly collector: Address;
}

/**
 * The deployments of base/commerce-payments, by version. The scheme names no others, and an exam trusts no others with
 * its money.
 */
const NEWEST: Deployment = {
  escrow: "0xf96815976523E00e65Be8f34cA5e64b4f41EB19c",
  collector: "0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88",
};
const DEPLOYMENTS: readonly Deployment[] = [
  NEWEST,
  {
    escrow: "0xBdEA0D1bcC5966192B070Fdf62aB4EF5b4420cff",
    collector: "0x0E3dF9510de65469C4518D7843919c0b8C7A7757",
  },
];

/** Whether an address is one that holds are paid to. */
export const isCollector = (address: Address): boolean =>
  DEPLOYMENTS.some(({ collector }) => isAddressEqual(collector, address));

/** The terms of a hold, from an entry of `auth-capture`. Times are Unix seconds. */
export interface HoldTerms extends Deployment {
  readonly operator: Address;
  readonly feeReceiver: Address;
  readonly minFeeBps: number;
  readonly maxFeeBps: number;
  readonly captureDeadline: number;
  readonly refundDeadline: number;
  /** The address that the salt binds, or the zero address. */
  readonly receiverAuthorizer: Address;
  readonly policy: Address;
}

/** Parses the `extra` of an entry. @returns a clause with the reason if it cannot be paid */
export function holdTermsOf(extra: Readonly<Record<string, unknown>>): HoldTerms | string {
  const { authCaptureEscrow, captureAuthorizer, feeRecipient, minFeeBps, maxFeeBps } = extra;
  const { captureDeadline, refundDeadline, receiverAuthorizer, policy } = extra;
  const deployment =
    authCaptureEscrow === undefined || authCaptureEscrow === ""
      ? NEWEST
      : DEPLOYMENTS.find(({ escrow }) => escrow.toLowerCase() === String(authCaptureEscrow).toLowerCase());
  if (deployment === undefined)
    return `an entry's extra.authCaptureEscrow is ${String(authCaptureEscrow)}; expected one of ${DEPLOYMENTS.map(({ escrow }) => escrow).join(", ")}`;
  if (!isAnAddress(captureAuthorizer)) return "an entry's extra.captureAuthorizer is not an address";
  if (!isAnAddress(feeRecipient)) return "an entry's extra.feeRecipient is not an address";
  if (!isWhole(minFeeBps, 10_000) || !isWhole(maxFeeBps, 10_000) || minFeeBps > maxFeeBps)
    return "an entry's extra.minFeeBps and extra.maxFeeBps are not basis points, the first at most the second";
  if (!isWhole(captureDeadline, MOST_TIME) || !isWhole(refundDeadline, MOST_TIME) || captureDeadline > refundDeadline)
    return "an entry's extra.captureDeadline and extra.refundDeadline are not Unix seconds, the first at most the second";
  return {
    ...deployment,
    operator: getAddress(captureAuthorizer),
    feeReceiver: getAddress(feeRecipient),
    ...{ minFeeBps, maxFeeBps, captureDeadline, refundDeadline },
    receiverAuthorizer: isAnAddress(receiverAuthorizer) ? getAddress(receiverAuthorizer) : zeroAddress,
    policy: isAnAddress(policy) ? getAddress(policy) : zeroAddress,
  };
}

const MOST_TIME = 2 ** 48 - 1;

const isAnAddress = (value: unknown): value is Address =>
  typeof value === "string" && isAddress(value, { strict: false });

const isWhole = (value: unknown, most: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most;

/** The escrow of a payment, and the payment's id. */
export interface HoldKey {
  readonly escrow: Address;
  readonly id: Hex;
}

/** A payment to be held: the nonce of its authorization is the hash of its terms. */
export interface Bound {
  readonly nonce: Hex;
  readonly hold: HoldKey;
  /** The payload's members about the salt. */
  readonly salted: Readonly<Record<string, Hex>>;
}

/** Binds an authorization to the terms of its hold, with a new salt. */
export function bind(terms: Terms, hold: HoldTerms, { from, value, validBefore }: Omit<Authorization, "nonce">): Bound {
  const saltNonce = toHex(randomBytes(32));
  const { receiverAuthorizer, policy } = hold;
  const isBound = receiverAuthorizer !== zeroAddress || policy !== zeroAddress;
  const salt = isBound ? boundSalt(policy, BigInt(saltNonce), receiverAuthorizer) : BigInt(saltNonce);
  const info: PaymentInfo = {
    operator: hold.operator,
    payer: from,
    receiver: terms.payTo,
    token: terms.asset,
    maxAmount: value,
    preApprovalExpiry: Number(validBefore),
    authorizationExpiry: hold.captureDeadline,
    refundExpiry: hold.refundDeadline,
    minFeeBps: hold.minFeeBps,
    maxFeeBps: hold.maxFeeBps,
    feeReceiver: hold.feeReceiver,
    salt,
  };
  const place = { chainId: Number(terms.network.slice("eip155:".length)), escrow: hold.escrow };
  return {
    nonce: payerAgnosticNonce(place, info),
    hold: { escrow: hold.escrow, id: paymentId(place, info) },
    salted: { salt: toHex(salt, { size: 32 }), ...(isBound && { saltNonce }) },
  };
}

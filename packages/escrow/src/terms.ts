import { type Address, getAddress } from "viem";
import { type ContestTerms, offeredContest } from "./contest-terms.ts";
import type { EscrowPlace } from "./payment-info.ts";

/** The x402 payment scheme of these terms. */
export const SCHEME = "commerce";
/** The fee that the contract requires: 1% of the released amount. */
export const FEE_BPS = 100;
/** The minimum amount that the contract holds, in atomic units of USDC. */
export const LEAST_AMOUNT = 10_000n;
/** The time for which a signed authorization is valid. */
export const MAX_TIMEOUT_SECONDS = 120;
export const AUTHORIZATION_SECONDS = 86_400;
const REFUND_SECONDS = 2 * 86_400;
/** The minimum time for the arbiter to release, in seconds: one hour less than offered. */
export const LEAST_AUTHORIZATION_SECONDS = AUTHORIZATION_SECONDS - 3600;
/** The remaining validity that an authorization needs to be mined in time, in seconds. */
export const LEAST_SECONDS_VALID = 6;
/** The allowed clock difference between a merchant's machines, in seconds. */
export const CLOCK_SKEW_SECONDS = 30;
/** The time after the hold from which anyone may refund it. */
export const REFUNDABLE_AFTER_SECONDS = 1800;
export const REFUNDABLE_AFTER_TEXT = `${REFUNDABLE_AFTER_SECONDS / 60} minutes`;

/** The token that pays, with the name and version of its EIP-712 domain. */
export interface Token {
  readonly address: Address;
  readonly name: string;
  readonly version: string;
}

/**
 * A contract that sells through the arbiter, and its roles. `Escrow.sol` is all three addresses in one, paid by the
 * scheme "commerce". An `ArbiterOperator.sol` holds nothing itself: base/commerce-payments does, paid by
 * "auth-capture".
 */
export interface EscrowFacts {
  /** The x402 scheme that pays it. */
  readonly scheme: typeof SCHEME | "auth-capture";
  readonly chainId: number;
  /**
   * The contract to call for hold, release, and refund: the `operator` of its payments. Deliveries are signed for it.
   */
  readonly address: Address;
  /** The contract that holds the money: ids and nonces bind it. */
  readonly custody: Address;
  /** The contract that the payer signs the money over to. */
  readonly collector: Address;
  readonly usdc: Token;
  readonly feeReceiver: Address;
  /** Name and version of the EIP-712 domain for deliveries. */
  readonly deliveryDomain: { readonly name: string; readonly version: string };
}

/** A merchant's terms for a request. */
export interface Offer {
  readonly escrow: EscrowFacts;
  readonly merchant: Address;
  /** Atomic units of USDC. */
  readonly price: bigint;
  /** The contest that its buyer may bring before the release, if any. */
  readonly contest?: ContestTerms | undefined;
}

/** Returns the roles of an `Escrow.sol` at this address. */
export const escrowAt = (address: Address) =>
  ({ scheme: SCHEME, address, custody: address, collector: address }) as const;

/** Returns the chain and the contract that hold a contract's payments. */
export const placeOf = ({ chainId, custody }: Pick<EscrowFacts, "chainId" | "custody">): EscrowPlace => ({
  chainId,
  escrow: custody,
});

export const networkOf = ({ chainId }: { readonly chainId: number }): `eip155:${number}` => `eip155:${chainId}`;

/** Returns the reason why a payment does not match the offer. */
export const mismatched = (field: string, got: unknown, wanted: unknown): string =>
  `The payment does not match the offer: ${field} is ${String(got).slice(0, 100)}, expected ${String(wanted)}.`;

/** Returns the payment requirements that every scheme shares. */
export const commonRequirements = ({ escrow, merchant, price }: Offer) => ({
  network: networkOf(escrow),
  amount: price.toString(),
  asset: getAddress(escrow.usdc.address),
  payTo: getAddress(merchant),
  maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
});

/**
 * Returns the x402 version 2 payment requirements of an offer.
 * @param nowMs the start of the expiries, in milliseconds; they are absolute unix seconds, rounded up
 */
export function requirements(offer: Offer, nowMs: number) {
  const { escrow, contest } = offer;
  const now = Math.ceil(nowMs / 1000);
  const contract = getAddress(escrow.address);
  return {
    scheme: SCHEME,
    ...commonRequirements(offer),
    extra: {
      name: escrow.usdc.name,
      version: escrow.usdc.version,
      escrowAddress: contract,
      operatorAddress: contract,
      tokenCollector: contract,
      settlementMethod: "authorize",
      minFeeBps: FEE_BPS,
      maxFeeBps: FEE_BPS,
      feeReceiver: getAddress(escrow.feeReceiver),
      preApprovalExpirySeconds: now + MAX_TIMEOUT_SECONDS,
      authorizationExpirySeconds: now + AUTHORIZATION_SECONDS,
      // A day after the authorization's expiry, plus the window.
      refundExpirySeconds: now + REFUND_SECONDS + (contest?.seconds ?? 0),
      ...offeredContest(contest),
    },
  };
}

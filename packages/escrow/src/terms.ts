import { type Address, getAddress } from "viem";
import { type ContestTerms, offeredContest } from "./contest-terms.ts";
import type { EscrowPlace } from "./payment-info.ts";

/** The x402 payment scheme of these terms. */
export const SCHEME = "commerce";
/** The fee the contract requires: 1% of what is released. */
export const FEE_BPS = 100;
/** The least that the contract holds, in atomic units of USDC. */
export const LEAST_AMOUNT = 10_000n;
/** How long a signed authorization stays valid. */
export const MAX_TIMEOUT_SECONDS = 120;
export const AUTHORIZATION_SECONDS = 86_400;
const REFUND_SECONDS = 2 * 86_400;
/** How long after the hold anyone may refund it. */
export const REFUNDABLE_AFTER_SECONDS = 1800;
export const REFUNDABLE_AFTER_TEXT = `${REFUNDABLE_AFTER_SECONDS / 60} minutes`;

/** The token that pays: its name and version are those of its EIP-712 domain. */
export interface Token {
  readonly address: Address;
  readonly name: string;
  readonly version: string;
}

/**
 * A contract that sells through the arbiter, and its roles. `Escrow.sol` is all three addresses in one, paid by the
 * scheme "commerce". An `ArbiterOperator.sol` holds nothing itself: base/commerce-payments does, paid by "auth-capture".
 */
export interface EscrowFacts {
  /** The x402 scheme that pays it. */
  readonly scheme: typeof SCHEME | "auth-capture";
  readonly chainId: number;
  /** What is called to hold, release and refund: the `operator` of its payments. Deliveries are signed for it. */
  readonly address: Address;
  /** What holds the money: ids and nonces bind it. */
  readonly custody: Address;
  /** What the payer signs the money over to. */
  readonly collector: Address;
  readonly usdc: Token;
  readonly feeReceiver: Address;
  /** Name and version of the EIP-712 domain that deliveries are signed under. */
  readonly deliveryDomain: { readonly name: string; readonly version: string };
}

/** What a merchant sells a request for. */
export interface Offer {
  readonly escrow: EscrowFacts;
  readonly merchant: Address;
  /** Atomic units of USDC. */
  readonly price: bigint;
  /** What its buyer may contest before the release; nothing if it is left out. */
  readonly contest?: ContestTerms | undefined;
}

/** An `Escrow.sol` at this address. */
export const escrowAt = (address: Address) =>
  ({ scheme: SCHEME, address, custody: address, collector: address }) as const;

/** Where the payments of a contract are held. */
export const placeOf = ({ chainId, custody }: Pick<EscrowFacts, "chainId" | "custody">): EscrowPlace => ({
  chainId,
  escrow: custody,
});

export const networkOf = ({ chainId }: { readonly chainId: number }): `eip155:${number}` => `eip155:${chainId}`;

/** What the payment requirements of every scheme name alike. */
export const commonRequirements = ({ escrow, merchant, price }: Offer) => ({
  network: networkOf(escrow),
  amount: price.toString(),
  asset: getAddress(escrow.usdc.address),
  payTo: getAddress(merchant),
  maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
});

/**
 * The x402 version 2 payment requirements of an offer.
 * @param nowMs the time the expiries count from, in milliseconds; they are absolute unix seconds, rounded up
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
      // A day after the authorization's, and the window.
      refundExpirySeconds: now + REFUND_SECONDS + (contest?.seconds ?? 0),
      ...offeredContest(contest),
    },
  };
}

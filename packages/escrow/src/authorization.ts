import type { Address, Hex, TypedDataDomain } from "viem";
import { type PaymentInfo, payerAgnosticNonce } from "./payment-info.ts";
import { type EscrowFacts, placeOf } from "./terms.ts";

/** An EIP-3009 authorization, signed by the payer: atomic units, times in unix seconds. */
export interface Authorization {
  readonly from: Address;
  /** The recipient of the tokens: the seller, or the contract that holds them for the seller. */
  readonly to: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

/** The members that the payer signs (EIP-712), the same for `TransferWithAuthorization` and `ReceiveWithAuthorization`. */
export const AUTHORIZATION_MEMBERS = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

/** The parts of a contract that the payer's signature binds. */
export type SignedFor = Pick<EscrowFacts, "chainId" | "custody" | "collector" | "usdc">;

/**
 * Returns the typed data that the payer signs: USDC's `ReceiveWithAuthorization` (EIP-3009) to the collector, which
 * alone can redeem it. Its nonce is the hash of all terms, so the signature binds every one of them.
 */
export const authorizationOf = (escrow: SignedFor, info: PaymentInfo) => ({
  domain: {
    name: escrow.usdc.name,
    version: escrow.usdc.version,
    chainId: escrow.chainId,
    verifyingContract: info.token,
  } satisfies TypedDataDomain,
  types: { ReceiveWithAuthorization: AUTHORIZATION_MEMBERS },
  primaryType: "ReceiveWithAuthorization" as const,
  message: {
    from: info.payer,
    to: escrow.collector,
    value: info.maxAmount,
    validAfter: 0n,
    validBefore: BigInt(info.preApprovalExpiry),
    nonce: payerAgnosticNonce(placeOf(escrow), info),
  },
});

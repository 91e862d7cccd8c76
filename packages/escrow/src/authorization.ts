import type { Address, TypedDataDomain } from "viem";
import { type EscrowPlace, type PaymentInfo, payerAgnosticNonce } from "./payment-info.ts";

/** The token that pays: its name and version are those of its EIP-712 domain. */
export interface Token {
  readonly address: Address;
  readonly name: string;
  readonly version: string;
}

const TYPES = {
  ReceiveWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/**
 * What the payer signs: USDC's `ReceiveWithAuthorization` (EIP-3009) to the escrow, which alone can redeem it. Its
 * nonce is the hash of all terms, so the signature binds every one of them.
 */
export const authorizationOf = (place: EscrowPlace, { name, version }: Token, info: PaymentInfo) => ({
  domain: { name, version, chainId: place.chainId, verifyingContract: info.token } satisfies TypedDataDomain,
  types: TYPES,
  primaryType: "ReceiveWithAuthorization" as const,
  message: {
    from: info.payer,
    to: place.escrow,
    value: info.maxAmount,
    validAfter: 0n,
    validBefore: BigInt(info.preApprovalExpiry),
    nonce: payerAgnosticNonce(place, info),
  },
});

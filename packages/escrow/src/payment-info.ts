import { type Address, encodeAbiParameters, type Hex, keccak256, stringToBytes, zeroAddress } from "viem";

/** The terms of one payment, as base/commerce-payments names them. Amounts are atomic units, times unix seconds. */
export interface PaymentInfo {
  readonly operator: Address;
  readonly payer: Address;
  readonly receiver: Address;
  readonly token: Address;
  readonly maxAmount: bigint;
  readonly preApprovalExpiry: number;
  readonly authorizationExpiry: number;
  readonly refundExpiry: number;
  readonly minFeeBps: number;
  readonly maxFeeBps: number;
  readonly feeReceiver: Address;
  readonly salt: bigint;
}

/** The chain and the contract of a hold. */
export interface EscrowPlace {
  readonly chainId: number;
  /** The contract that holds the money. */
  readonly escrow: Address;
}

/** The EIP-712 type hash of the terms. */
export const PAYMENT_INFO_TYPEHASH: Hex = keccak256(
  stringToBytes(
    "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)",
  ),
);

const TERMS = [
  { type: "bytes32" },
  { type: "address" },
  { type: "address" },
  { type: "address" },
  { type: "address" },
  { type: "uint120" },
  { type: "uint48" },
  { type: "uint48" },
  { type: "uint48" },
  { type: "uint16" },
  { type: "uint16" },
  { type: "address" },
  { type: "uint256" },
] as const;
const PLACE = [{ type: "uint256" }, { type: "address" }, { type: "bytes32" }] as const;

/**
 * Returns the payment's id: the hash of its terms, the chain, and the contract (`getHash`).
 * @throws viem's encoding errors for an address or a number that does not fit its field
 */
export const paymentId = (place: EscrowPlace, info: PaymentInfo): Hex => hash(place, info, info.payer);

/** Returns the nonce of the payer's authorization: the id computed with a zero payer (`getPayerAgnosticHash`). */
export const payerAgnosticNonce = (place: EscrowPlace, info: Omit<PaymentInfo, "payer">): Hex =>
  hash(place, info, zeroAddress);

function hash({ chainId, escrow }: EscrowPlace, info: Omit<PaymentInfo, "payer">, payer: Address): Hex {
  const terms = encodeAbiParameters(TERMS, [
    PAYMENT_INFO_TYPEHASH,
    info.operator,
    payer,
    info.receiver,
    info.token,
    info.maxAmount,
    info.preApprovalExpiry,
    info.authorizationExpiry,
    info.refundExpiry,
    info.minFeeBps,
    info.maxFeeBps,
    info.feeReceiver,
    info.salt,
  ]);
  return keccak256(encodeAbiParameters(PLACE, [BigInt(chainId), escrow, keccak256(terms)]));
}

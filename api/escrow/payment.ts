import { encodeAbiParameters, keccak256, toHex } from "viem";
import type { Network } from "../kernel/networks.ts";
import type { Address, Hex } from "../kernel/wallet.ts";

const ZERO_ADDRESS: Address = "0x0000000000000000000000000000000000000000";

/** The terms of an escrowed payment, as `IEscrow.PaymentInfo` has them. Amounts are atomic USDC, times unix seconds. */
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

/** A hold that the chain shows. */
export interface Hold {
  readonly network: Network;
  readonly contract: Address;
  readonly id: Hex;
  readonly info: PaymentInfo;
  readonly transaction: Hex;
  readonly block: number;
  readonly refundableFrom: number;
}

/** The network of the escrow contracts. */
export const ESCROW_NETWORK: Network = "eip155:8453";

export type EscrowStatus = "none" | "held" | "released" | "refunded";

/** The order of `IEscrow.Status`. */
export const STATUSES: readonly EscrowStatus[] = ["none", "held", "released", "refunded"];

export const FEE_BPS = 100;
/** The buyer may be refunded by anyone this long after the hold. */
export const TIMEOUT_SECONDS = 1_800;

/** What the merchant gets when a payment is released: all but 1%, rounded down. */
export const feeOf = (amount: bigint): bigint => (amount * BigInt(FEE_BPS)) / 10_000n;

const TYPE =
  "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)";
const TYPEHASH = keccak256(toHex(TYPE));

const FIELDS = [
  { type: "bytes32" },
  ...(["address", "address", "address", "address"] as const).map((type) => ({ type })),
  ...(["uint120", "uint48", "uint48", "uint48", "uint16", "uint16", "address", "uint256"] as const).map((type) => ({
    type,
  })),
] as const;

/** The id of a payment: base/commerce-payments' hash of the terms, the chain and the contract. */
export function paymentId(info: PaymentInfo, chainId: number, contract: Address): Hex {
  const { operator, payer, receiver, token, maxAmount, preApprovalExpiry, authorizationExpiry, refundExpiry } = info;
  const terms = keccak256(
    encodeAbiParameters(FIELDS, [
      TYPEHASH,
      operator,
      payer,
      receiver,
      token,
      maxAmount,
      preApprovalExpiry,
      authorizationExpiry,
      refundExpiry,
      info.minFeeBps,
      info.maxFeeBps,
      info.feeReceiver,
      info.salt,
    ] as never),
  );
  return keccak256(
    encodeAbiParameters(
      [{ type: "uint256" }, { type: "address" }, { type: "bytes32" }],
      [BigInt(chainId), contract, terms],
    ),
  );
}

/** The nonce of the payer's authorization: the id as if the payer were zero. */
export const payerAgnosticHash = (info: PaymentInfo, chainId: number, contract: Address): Hex =>
  paymentId({ ...info, payer: ZERO_ADDRESS }, chainId, contract);

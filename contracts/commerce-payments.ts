import { type Address, parseAbi, parseAbiItem } from "viem";

/**
 * The addresses of base/commerce-payments, version 1.0, on Base, on Base Sepolia, and on the local chains
 * (https://github.com/base/commerce-payments).
 */
export const COMMERCE_PAYMENTS: {
  readonly escrow: Address;
  /** The collector for EIP-3009 authorizations. */
  readonly collector: Address;
  /** Whether the escrow's `capture` takes the fee as an amount, as version 1.1 does, or in basis points. */
  readonly feeIsAmount: boolean;
} = {
  escrow: "0xBdEA0D1bcC5966192B070Fdf62aB4EF5b4420cff",
  collector: "0x0E3dF9510de65469C4518D7843919c0b8C7A7757",
  feeIsAmount: false,
};

/**
 * The ABI of the escrow and its collector that this project calls directly. All other calls go through
 * `contracts/ArbiterOperator.sol`.
 */
export const commercePaymentsAbi = parseAbi([
  "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
  "function PAYMENT_INFO_TYPEHASH() view returns (bytes32)",
  "function getHash(PaymentInfo info) view returns (bytes32)",
  "function getTokenStore(address operator) view returns (address)",
  "function authCaptureEscrow() view returns (address)",
  "function collectorType() view returns (uint256)",
]);

/** The errors of the escrow when its operator holds a payment. */
export const commercePaymentsErrorsAbi = parseAbi([
  "error AfterPreApprovalExpiry(uint48 timestamp, uint48 expiry)",
  "error InvalidExpiries(uint48 preApproval, uint48 authorization, uint48 refund)",
  "error PaymentAlreadyCollected(bytes32 paymentInfoHash)",
  "error TokenCollectionFailed()",
]);

/** The escrow's event when a payer reclaims a payment without the operator. */
export const reclaimedEvent = parseAbiItem("event PaymentReclaimed(bytes32 indexed paymentInfoHash, uint256 amount)");

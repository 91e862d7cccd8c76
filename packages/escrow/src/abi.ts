import { parseAbi } from "viem";

/**
 * The functions and events of `Escrow.sol` and `ArbiterOperator.sol` that this package uses, and the errors of
 * base/commerce-payments below the latter. Amounts are atomic units of USDC, times unix seconds.
 */
export const escrowAbi = parseAbi([
  "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
  "event Held(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, uint48 preApprovalExpiry, uint48 authorizationExpiry, uint48 refundExpiry, uint256 salt, uint48 refundableFrom)",
  "event Refunded(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, bytes32 record)",
  "event Credited(bytes32 indexed id, address indexed account, uint256 amount)",
  "function authorize(PaymentInfo info, uint256 amount, address collector, bytes signature)",
  "function refund(PaymentInfo info, bytes32 record, bytes verdict)",
  "function payments(bytes32 id) view returns (uint8 status, uint48 refundableFrom)",
  "function getHash(PaymentInfo info) view returns (bytes32 id)",
  "function ESCROW() view returns (address escrow)",
  "function COLLECTOR() view returns (address collector)",
  "function owed(address account) view returns (uint256 amount)",
  "function USDC() view returns (address usdc)",
  "function FEE_RECIPIENT() view returns (address feeRecipient)",
  "error WrongOperator(address got, address wanted)",
  "error WrongCollector(address got, address wanted)",
  "error WrongToken(address got, address wanted)",
  "error WrongReceiver(address got)",
  "error WrongFee(uint16 gotMin, uint16 gotMax, uint16 wanted)",
  "error WrongFeeReceiver(address got, address wanted)",
  "error WrongAmount(uint256 got, uint256 wanted)",
  "error BelowMinimum(uint256 got, uint256 wanted)",
  "error WrongExpiries(uint48 preApproval, uint48 authorization, uint48 refund)",
  "error WrongStatus(bytes32 id, uint8 got, uint8 wanted)",
  "error PreApprovalExpired(uint256 timestamp, uint48 expiry)",
  "error NotYetRefundable(address got, address wanted, uint256 timestamp, uint48 refundableFrom)",
  "error PayoutStarved(uint256 got, uint256 wanted)",
  "error Reentrancy()",
  "error InvalidSender(address sender, address expected)",
  "error AfterPreApprovalExpiry(uint48 timestamp, uint48 expiry)",
  "error InvalidExpiries(uint48 preApproval, uint48 authorization, uint48 refund)",
  "error PaymentAlreadyCollected(bytes32 paymentInfoHash)",
  "error TokenCollectionFailed()",
]);

/** The event of base/commerce-payments' escrow when a payer reclaims a payment. */
export const commercePaymentsAbi = parseAbi([
  "event PaymentReclaimed(bytes32 indexed paymentInfoHash, uint256 amount)",
]);

/** The two parts of the token's EIP-712 domain. */
export const tokenAbi = parseAbi(["function name() view returns (string)", "function version() view returns (string)"]);

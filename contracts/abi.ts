import { parseAbi } from "viem";

/**
 * The two events of Circle's FiatTokenV2_2 that the index reads. They are a separate list because Ponder hashes the ABI
 * that it receives, so a function in it would start a new index.
 */
export const usdcEventsAbi = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);

/** The ABI of USDC that the service uses (EIP-20, EIP-3009; with signatures as bytes for ERC-1271 wallets). */
export const usdcAbi = [
  ...usdcEventsAbi,
  ...parseAbi([
    "function balanceOf(address account) view returns (uint256)",
    "function paused() view returns (bool)",
    "function isBlacklisted(address account) view returns (bool)",
    "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
    "function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)",
    "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  ]),
] as const;

/** The events of `contracts/Escrow.sol`, from which every balance that it holds can be rebuilt. */
export const escrowEventsAbi = parseAbi([
  "event Opened(address indexed usdc, address indexed arbiter, address indexed feeRecipient)",
  "event Held(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, uint48 preApprovalExpiry, uint48 authorizationExpiry, uint48 refundExpiry, uint256 salt, uint48 refundableFrom)",
  "event Released(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, uint256 fee, bytes32 record)",
  "event Refunded(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, bytes32 record)",
  "event Credited(bytes32 indexed id, address indexed account, uint256 amount)",
  "event Withdrawn(address indexed account, uint256 amount)",
]);

/** The whole ABI of `contracts/Escrow.sol`; `contracts/interfaces/IEscrow.sol` documents it. */
export const escrowAbi = [
  ...escrowEventsAbi,
  ...parseAbi([
    "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
    "constructor(address usdc, address arbiter, address feeRecipient)",
    "function authorize(PaymentInfo info, uint256 amount, address collector, bytes signature)",
    "function release(PaymentInfo info, bytes32 record, bytes verdict)",
    "function refund(PaymentInfo info, bytes32 record, bytes verdict)",
    "function withdraw(address account) returns (uint256 amount)",
    "function getHash(PaymentInfo info) view returns (bytes32)",
    "function getPayerAgnosticHash(PaymentInfo info) view returns (bytes32)",
    "function payments(bytes32 id) view returns (uint8 status, uint48 refundableFrom)",
    "function owed(address account) view returns (uint256 amount)",
    "function USDC() view returns (address)",
    "function ARBITER() view returns (address)",
    "function FEE_RECIPIENT() view returns (address)",
    "function MINIMUM() view returns (uint256)",
    "function PAYMENT_INFO_TYPEHASH() view returns (bytes32)",
    "function VERDICT_TYPEHASH() view returns (bytes32)",
    "function DOMAIN_SEPARATOR() view returns (bytes32)",
    "error ZeroAddress()",
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
    "error AuthorizationExpired(uint256 timestamp, uint48 expiry)",
    "error NotArbiter(address got, address wanted)",
    "error NotYetRefundable(address got, address wanted, uint256 timestamp, uint48 refundableFrom)",
    "error PayoutStarved(uint256 got, uint256 wanted)",
    "error NothingOwed(address account)",
    "error WithdrawalRefused(address account, uint256 amount)",
  ]),
] as const;

/** The whole ABI of `contracts/ArbiterOperator.sol`; `contracts/interfaces/IArbiterOperator.sol` documents it. */
export const operatorAbi = parseAbi([
  "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
  "constructor(address escrow, address collector, address usdc, address arbiter, address feeRecipient, bool feeIsAmount)",
  "function authorize(PaymentInfo info, uint256 amount, address collector, bytes signature)",
  "function release(PaymentInfo info, bytes32 record, bytes verdict)",
  "function refund(PaymentInfo info, bytes32 record, bytes verdict)",
  "function getHash(PaymentInfo info) view returns (bytes32)",
  "function payments(bytes32 id) view returns (uint8 status, uint48 refundableFrom)",
  "function ESCROW() view returns (address)",
  "function COLLECTOR() view returns (address)",
  "function USDC() view returns (address)",
  "function ARBITER() view returns (address)",
  "function FEE_RECIPIENT() view returns (address)",
  "function MINIMUM() view returns (uint256)",
  "function FEE_IS_AMOUNT() view returns (bool)",
  "function PAYMENT_INFO_TYPEHASH() view returns (bytes32)",
  "function VERDICT_TYPEHASH() view returns (bytes32)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "event Opened(address indexed usdc, address indexed arbiter, address indexed feeRecipient)",
  "event Held(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, uint48 preApprovalExpiry, uint48 authorizationExpiry, uint48 refundExpiry, uint256 salt, uint48 refundableFrom)",
  "event Released(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, uint256 fee, bytes32 record)",
  "event Refunded(bytes32 indexed id, address indexed payer, address indexed receiver, uint256 amount, bytes32 record)",
  "error ZeroAddress()",
  "error WrongOperator(address got, address wanted)",
  "error WrongCollector(address got, address wanted)",
  "error WrongToken(address got, address wanted)",
  "error WrongReceiver(address got)",
  "error WrongFee(uint16 gotMin, uint16 gotMax, uint16 wanted)",
  "error WrongFeeReceiver(address got, address wanted)",
  "error WrongAmount(uint256 got, uint256 wanted)",
  "error BelowMinimum(uint256 got, uint256 wanted)",
  "error WrongStatus(bytes32 id, uint8 got, uint8 wanted)",
  "error NotArbiter(address got, address wanted)",
  "error NotYetRefundable(address got, address wanted, uint256 timestamp, uint48 refundableFrom)",
]);

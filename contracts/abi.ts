import { parseAbi } from "viem";

/**
 * The two events of Circle's FiatTokenV2_2 that the index reads.
 * A list of its own: Ponder hashes the ABI it is given, so a function in it would start a new index.
 */
export const usdcEventsAbi = parseAbi([
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);

/** What the service reads from and sends to USDC (EIP-20, EIP-3009; signatures as bytes for ERC-1271 wallets too). */
export const usdcAbi = [
  ...usdcEventsAbi,
  ...parseAbi([
    "function balanceOf(address account) view returns (uint256)",
    "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
    "function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)",
    "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  ]),
] as const;

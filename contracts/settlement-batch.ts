import { type Address, type Hex, parseAbi, toHex } from "viem";

/** The whole ABI of `contracts/SettlementBatch.sol`; `contracts/interfaces/ISettlementBatch.sol` documents it. */
export const settlementBatchAbi = parseAbi([
  "function settle(address token, address to, uint256 gasCap, bytes items) returns (uint256 failed, uint256 skipped)",
  "function hold(address escrow, uint256 gasCap, bytes[] calls) returns (uint256 failed, uint256 skipped)",
  "event Unsettled(uint256 failed, uint256 skipped)",
  "error Malformed()",
  "error Starved(uint256 index)",
]);

/** The factory that deploys it, at the same address on Base, on Base Sepolia and on the local chains. */
export const CREATEX: Address = "0xba5Ed099633D3B313e4D5F7bdc1305d3c28ba5Ed";

/**
 * The address of `contracts/SettlementBatch.sol` on every chain, independent of the deployer. CREATEX derives the
 * address from the salt and the creation code. Other code has another address and another hash, and a test compares
 * both with the compiler's output. A correct deployment's code has `codeHash` as its keccak256.
 */
export const SETTLEMENT_BATCH: {
  readonly address: Address;
  readonly codeHash: Hex;
  readonly salt: Hex;
} = {
  address: "0xd9Af299D3bb91A4ef9e934Fba4c39A28cc0c469c",
  codeHash: "0x8e543af6790c2844ae34b6545aebf4bf015ad4f0dab47ceb529ae8f2e18c0fc0",
  salt: toHex("SettlementBatch 1", { size: 32 }),
};

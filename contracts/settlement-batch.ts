import { parseAbi } from "viem";

/** The whole ABI of `contracts/SettlementBatch.sol`; `contracts/interfaces/ISettlementBatch.sol` says what it means. */
export const settlementBatchAbi = parseAbi([
  "function settle(address token, address to, uint256 gasCap, bytes items) returns (uint256 failed, uint256 skipped)",
  "event Unsettled(uint256 failed, uint256 skipped)",
  "error Malformed()",
  "error Starved(uint256 index)",
]);

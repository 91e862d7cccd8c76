import { parseAbi } from "viem";

/** Deployed at one address on Base, Base Sepolia and the local chains (multicall3.com). */
export const MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11";

const BLOCK = {
  address: MULTICALL3,
  abi: parseAbi([
    "function getBlockNumber() view returns (uint256)",
    "function getCurrentBlockTimestamp() view returns (uint256)",
  ]),
} as const;

/** The number and the time (Unix seconds) of the block that the other calls are read at. */
export const AT_BLOCK = [
  { ...BLOCK, functionName: "getBlockNumber" },
  { ...BLOCK, functionName: "getCurrentBlockTimestamp" },
] as const;

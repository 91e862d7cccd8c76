import { formatUnits } from "viem";

/** Formats atomic units for people, such as 0.003 USDC. The exam pays in tokens of six decimals. */
export const usdc = (atomic: bigint): string => `${formatUnits(atomic, 6)} USDC`;

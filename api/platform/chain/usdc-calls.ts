import { decodeFunctionResult, encodeFunctionData, type Hex } from "viem";
import { usdcAbi as abi } from "../../../contracts/abi.ts";
import type { Address } from "../wallet.ts";
import type { Call } from "./read-at-block.ts";

/** The view functions of USDC at an address. */
export const usdcCalls = (target: Address) => ({
  /** In atomic units. */
  balanceOf: (account: Address): Call<bigint> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "balanceOf", args: [account] }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "balanceOf", data }),
  }),
  /** Whether an authorization's nonce is used or canceled (EIP-3009). */
  isUsed: (payer: Address, nonce: Hex): Call<boolean> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "authorizationState", args: [payer, nonce] }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "authorizationState", data }),
  }),
  isBlacklisted: (account: Address): Call<boolean> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "isBlacklisted", args: [account] }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "isBlacklisted", data }),
  }),
  isPaused: (): Call<boolean> => ({
    target,
    callData: encodeFunctionData({ abi, functionName: "paused" }),
    decode: (data) => decodeFunctionResult({ abi, functionName: "paused", data }),
  }),
});

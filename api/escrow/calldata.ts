import { encodeFunctionData, multicall3Abi } from "viem";
import { escrowAbi } from "../../contracts/abi.ts";
import { settlementBatchAbi } from "../../contracts/settlement-batch.ts";
import type { PaymentInfo } from "../../packages/escrow/src/payment-info.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { SignedHold } from "../payments/schemes/escrowed/holds.ts";

/** The call that places a hold. Anybody may make it. */
export const authorizeData = ({ collector, info, signature }: Omit<SignedHold, "contract" | "nonce">): Hex =>
  encodeFunctionData({
    abi: escrowAbi,
    functionName: "authorize",
    args: [info, info.maxAmount, collector, signature],
  });

/** What ends a held payment. */
export interface Ending {
  readonly decision: "release" | "refund";
  readonly info: PaymentInfo;
  readonly record: Hex;
  readonly verdict: Hex;
}

/** The call that releases or refunds a payment. */
export const endingData = ({ decision, info, record, verdict }: Ending): Hex =>
  encodeFunctionData({ abi: escrowAbi, functionName: decision, args: [info, record, verdict] });

/** The settlement batch's call for several calls of one contract. */
export const holdsData = (contract: Address, gasCap: bigint, calls: readonly Hex[]): Hex =>
  encodeFunctionData({ abi: settlementBatchAbi, functionName: "hold", args: [contract, gasCap, calls] });

/** Multicall3's call for several calls, each of which may fail without the others. */
export const aggregateData = (calls: readonly { readonly to: Address; readonly data: Hex }[]): Hex => {
  const each = calls.map(({ to: target, data: callData }) => ({ target, allowFailure: true, callData }));
  return encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [each] });
};

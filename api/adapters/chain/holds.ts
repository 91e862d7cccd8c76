import { BaseError, ContractFunctionRevertedError, encodeFunctionData, type PublicClient } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { Holds, SignedHold } from "../../payments/commerce/scheme.ts";
import type { Relayer } from "./relayer.ts";
import { discreet } from "./rpc-errors.ts";

const MINED_WITHIN_MS = 20_000;

/** The arbiter's relayer sends holds; null if no escrow contract is configured. */
export const createHolds = (client: PublicClient, relayer: Relayer | null): Holds => ({
  refusal: discreet((hold) => refusal(client, hold)),
  make: discreet(async ({ contract, info, signature }) => {
    if (relayer === null)
      throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
    const args = [info, info.maxAmount, contract, signature] as const;
    const data = encodeFunctionData({ abi: escrowAbi, functionName: "authorize", args });
    const { status } = await relayer.waitFor(await relayer.send({ to: contract, data }), MINED_WITHIN_MS);
    if (status !== "success") throw new Error("the hold reverted");
  }),
});

async function refusal(client: PublicClient, { contract: address, info, signature }: SignedHold) {
  try {
    const args = [info, info.maxAmount, address, signature] as const;
    await client.simulateContract({ address, abi: escrowAbi, functionName: "authorize", args });
    return null;
  } catch (error) {
    const reverted = error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionRevertedError);
    if (!(reverted instanceof ContractFunctionRevertedError)) throw error;
    const reason = reverted.reason ?? reverted.data?.errorName ?? "it reverted";
    return `The hold would fail on-chain: ${reason}. Nothing was charged.`;
  }
}

import { BaseError, isAddressEqual, type PublicClient } from "viem";
import { evaluatorAbi } from "../../packages/escrow/src/evaluator-abi.ts";
import type { Address } from "../platform/wallet.ts";

/**
 * Checks that the contract executes this arbiter's verdicts on ERC-8183 jobs. If it waited for another arbiter, every
 * job that names it would expire.
 * @throws Error with the address that was found or the node's reason
 */
export async function requireEvaluator(client: PublicClient, address: Address, arbiter: Address): Promise<void> {
  const call = { address, abi: evaluatorAbi, functionName: "ARBITER" } as const;
  const named = await client.readContract(call).catch((cause: unknown) => {
    const reason = cause instanceof BaseError ? cause.shortMessage : "the node did not answer";
    throw new Error(`EVALUATOR_ADDRESS is wrong, or Base cannot be reached: ${address}: ${reason}`, { cause });
  });
  if (!isAddressEqual(named, arbiter))
    throw new Error(`the arbiter of ${address} is ${named}, but ARBITER_PRIVATE_KEY belongs to ${arbiter}`);
}

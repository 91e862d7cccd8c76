import type { PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { AT_BLOCK, MULTICALL3 } from "./multicall.ts";

interface Asked {
  readonly usdc: Address;
  readonly payer: Address;
  readonly nonce: Hex;
  readonly transaction: Hex;
}

/** Whether a nonce was still unused once a transaction was mined. Rejects if the node has not seen its block. */
export async function unusedAfter(client: PublicClient, { usdc, payer, nonce, transaction }: Asked): Promise<boolean> {
  const { blockNumber } = await client.getTransactionReceipt({ hash: transaction });
  const [seen, , isUsed] = await client.multicall({
    allowFailure: false,
    multicallAddress: MULTICALL3,
    contracts: [...AT_BLOCK, { address: usdc, abi: usdcAbi, functionName: "authorizationState", args: [payer, nonce] }],
  });
  if (seen < blockNumber) throw new Error("the node has not seen the block of a transaction that failed");
  return !isUsed;
}

import { getAbiItem, type PublicClient } from "viem";
import type { Address } from "../api/kernel/wallet.ts";
import { escrowEventsAbi } from "../contracts/abi.ts";
import { readBlock } from "./chain.ts";
import type { CountHolds } from "./own-addresses.ts";

const HELD = getAbiItem({ abi: escrowEventsAbi, name: "Held" });
/** Providers that refuse a range accept a smaller one; no provider refuses so few blocks. */
const LEAST_BLOCKS = 5n;

/** A node that lags, or has pruned its logs, answers as if there were none: so many answers must agree that there is none. */
const ANSWERS = 3;

/**
 * Counts an escrow's holds from a block on, in as few requests as the provider lets one have. Rejects if the node does not
 * answer, or does not have the last block.
 */
export const countHoldsOf =
  (chain: PublicClient, fromBlock: number): CountHolds =>
  async (escrow, toBlock) => {
    if ((await readBlock(chain, toBlock)) === null)
      throw new Error(
        `The node does not return block ${toBlock}, up to which the holds of ${escrow} are to be counted`,
      );
    let holds = 0;
    for (let answers = 0; holds === 0 && answers < ANSWERS; answers += 1)
      holds = await countOnce(chain, escrow, [BigInt(fromBlock), BigInt(toBlock)]);
    return holds;
  };

async function countOnce(
  chain: PublicClient,
  address: Address,
  [first, end]: readonly [bigint, bigint],
): Promise<number> {
  let [count, from, width] = [0, first, end - first + 1n];
  while (from <= end) {
    const to = from + width - 1n < end ? from + width - 1n : end;
    try {
      count += (await chain.getLogs({ address, event: HELD, fromBlock: from, toBlock: to })).length;
      from = to + 1n;
    } catch (error) {
      if (width <= LEAST_BLOCKS) throw error;
      width /= 2n;
    }
  }
  return count;
}

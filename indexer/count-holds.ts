import { getAbiItem, type PublicClient } from "viem";
import { escrowEventsAbi } from "../contracts/abi.ts";
import type { CountHolds } from "./own-addresses.ts";

const HELD = getAbiItem({ abi: escrowEventsAbi, name: "Held" });
/** Providers that refuse a range accept a smaller one; no provider refuses so few blocks. */
const LEAST_BLOCKS = 5n;

/** Counts an escrow's holds from a block on, in as few requests as the provider lets one have. */
export const countHoldsOf =
  (chain: PublicClient, fromBlock: number): CountHolds =>
  async (address, toBlock) => {
    const [end, all] = [BigInt(toBlock), BigInt(toBlock - fromBlock + 1)];
    let [count, from, width] = [0, BigInt(fromBlock), all];
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
  };

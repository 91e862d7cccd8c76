import { BaseError, ContractFunctionZeroDataError, type PublicClient, parseAbi } from "viem";
import type { Sender } from "./sender.ts";

/** What an ordinary account's payment is reckoned with. */
export const TYPICAL_GAS = 100_000n;
const TYPICAL_BYTES = 500n;

/** Where OP-stack chains, Base among them, say what their parent chain charges for data (docs.optimism.io). */
const GAS_PRICE_ORACLE = "0x420000000000000000000000000000000000000f";
const ORACLE = parseAbi(["function getL1FeeUpperBound(uint256 unsignedTxSize) view returns (uint256)"]);
const CACHE_MS = 30_000;

/** What one payment's transaction costs at the moment, in wei: its gas, and its data where a parent chain charges it. */
export function readCost({ client, conditions }: Pick<Sender, "client" | "conditions">): () => Promise<bigint> {
  let cached: { readonly at: number; readonly fee: Promise<bigint> } | null = null;
  const dataFee = () => {
    if (cached === null || performance.now() - cached.at > CACHE_MS) {
      const entry = { at: performance.now(), fee: askDataFee(client) };
      cached = entry;
      entry.fee.catch(() => {
        if (cached === entry) cached = null;
      });
    }
    return cached.fee;
  };
  return async () => {
    const [{ market }, fee] = await Promise.all([conditions(), dataFee()]);
    return TYPICAL_GAS * (market.baseFee + market.tip) + fee;
  };
}

/** Nothing where there is no oracle: the chain is no rollup, or a local one. */
async function askDataFee(client: PublicClient): Promise<bigint> {
  try {
    const call = { address: GAS_PRICE_ORACLE, abi: ORACLE, functionName: "getL1FeeUpperBound" } as const;
    return await client.readContract({ ...call, args: [TYPICAL_BYTES] });
  } catch (error) {
    if (error instanceof BaseError && error.walk((e) => e instanceof ContractFunctionZeroDataError) !== null) return 0n;
    throw error;
  }
}

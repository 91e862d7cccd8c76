import type { Address, Hex } from "viem";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { AnvilClient } from "../../../scripts/embedded/anvil.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";

const { usdc } = NETWORKS["eip155:8453"];

/** A payment by authorization as the current chain's logs show it. */
export interface ChainPayment {
  readonly from: Address;
  readonly to: Address;
  readonly nonce: Hex;
  readonly transaction: Hex;
  readonly block: number;
}

/** Everything the chain shows, recounted without the service's own reader or index. */
export async function paymentsOnChain({
  chain,
}: {
  chain: Pick<AnvilClient, "getContractEvents">;
}): Promise<readonly ChainPayment[]> {
  const range = { address: usdc.address, fromBlock: 0n } as const;
  const [used, transfers] = await Promise.all([
    chain.getContractEvents({ ...range, abi: USDC_ABI, eventName: "AuthorizationUsed" }),
    chain.getContractEvents({ ...range, abi: USDC_ABI, eventName: "Transfer" }),
  ]);
  const place = (blockHash: Hex, logIndex: number) => `${blockHash} ${logIndex}`;
  const byPlace = new Map(transfers.map((log) => [place(log.blockHash, log.logIndex), log]));
  return used.flatMap(({ args, blockHash, blockNumber, logIndex, transactionHash }) => {
    const { from, to } = byPlace.get(place(blockHash, logIndex + 1))?.args ?? {};
    const { nonce } = args;
    if (from === undefined || to === undefined || nonce === undefined || from !== args.authorizer) return [];
    return [{ from, to, nonce, transaction: transactionHash, block: Number(blockNumber) }];
  });
}

import { createPublicClient, http, type PublicClient } from "viem";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];

/** The node serves another chain: a setting is wrong, and no restart will fix it. */
export class WrongChainError extends Error {
  override readonly name = "WrongChainError";
}

export interface Head {
  readonly number: number;
  readonly timestamp: number;
}

export const connectChain = (rpcUrl: string): PublicClient =>
  createPublicClient({ transport: http(rpcUrl, { timeout: 10_000, retryCount: 0 }) });

/** The node's newest block; the node must serve Base. */
export async function readHead(chain: PublicClient): Promise<Head> {
  const chainId = await chain.getChainId();
  if (chainId !== CHAIN_ID) {
    throw new WrongChainError(`BASE_RPC_URL is wrong: expected a node of chain ${CHAIN_ID}, got chain ${chainId}`);
  }
  const { number, timestamp } = await chain.getBlock({ blockTag: "latest" });
  return { number: Number(number), timestamp: Number(timestamp) };
}

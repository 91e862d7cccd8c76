import {
  BlockNotFoundError,
  createPublicClient,
  fallback,
  HttpRequestError,
  http,
  type PublicClient,
  RpcError,
  RpcRequestError,
} from "viem";
import type { Hex } from "../api/platform/wallet.ts";
import { CHAIN_ID } from "./ledger.ts";

/** The node serves another chain: a setting is wrong, and no restart will fix it. */
export class WrongChainError extends Error {
  override readonly name = "WrongChainError";
}

export interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

export interface Block extends Head {
  readonly hash: Hex;
  readonly transactions: readonly Hex[];
}

/** @param rpcUrls in the order in which they are asked */
export const connectChain = (...rpcUrls: readonly string[]): PublicClient => {
  const nodes = rpcUrls.map((url) => http(url, { timeout: 10_000, retryCount: 0 }));
  return createPublicClient({ transport: fallback(nodes, { retryCount: 0 }) });
};

/** The node's newest block; the node must serve Base. Rejects if it does not answer with a block. */
export async function readHead(chain: PublicClient): Promise<Head> {
  const chainId = await chain.getChainId();
  if (chainId !== CHAIN_ID)
    throw new WrongChainError(`BASE_RPC_URL is wrong: expected a node of chain ${CHAIN_ID}, got chain ${chainId}`);
  const block = asBlock(await chain.getBlock({ blockTag: "latest" }));
  if (block === null) throw new Error("the node's newest block lacks its number, hash, or time");
  return block;
}

/**
 * Whether the node still reads the chain: its newest block is then years old, or the first. A provider that refuses the
 * question has no node that syncs. Rejects if there is no answer.
 */
export const isSyncing = (chain: PublicClient): Promise<boolean> =>
  chain.request<{ Method: "eth_syncing"; Parameters?: undefined; ReturnType: unknown }>({ method: "eth_syncing" }).then(
    (answer) => typeof answer === "object" && answer !== null,
    (error: unknown) => {
      const isRefusal = error instanceof RpcError || error instanceof RpcRequestError;
      const status = error instanceof HttpRequestError ? error.status : undefined;
      if (isRefusal || [400, 401, 403, 404, 405, 501].includes(status ?? 0)) return false;
      throw error;
    },
  );

/** The node's block of this number; null if it has none, or answers with half a block or another one, as proxies do. */
export async function readBlock(chain: PublicClient, number: number): Promise<Block | null> {
  try {
    const block = asBlock(await chain.getBlock({ blockNumber: BigInt(number) }));
    return block?.number === number ? block : null;
  } catch (error) {
    if (error instanceof BlockNotFoundError) return null;
    throw error;
  }
}

/** What viem makes of a node's answer, which may lack anything. */
interface Answer {
  readonly number?: bigint | null;
  readonly hash?: Hex | null;
  readonly timestamp?: bigint;
  readonly transactions: readonly Hex[];
}

function asBlock({ number, hash, timestamp, transactions }: Answer): Block | null {
  if (typeof number !== "bigint" || typeof timestamp !== "bigint" || !hash || !/^0x[0-9a-f]{64}$/i.test(hash))
    return null;
  return { number: Number(number), hash, timestamp: Number(timestamp), transactions };
}

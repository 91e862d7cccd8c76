import {
  BlockNotFoundError,
  createPublicClient,
  HttpRequestError,
  http,
  type PublicClient,
  RpcError,
  RpcRequestError,
} from "viem";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import type { Hex } from "../api/platform/wallet.ts";

const { chainId: CHAIN_ID } = NETWORKS[MAIN_NETWORK];

/** The node serves another chain: a setting is wrong, and no restart will fix it. */
export class WrongChainError extends Error {
  override readonly name = "WrongChainError";
}

export interface Head {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** A block as a node returns it. */
export interface Block extends Head {
  readonly hash: Hex;
  readonly transactions: readonly Hex[];
}

export const connectChain = (rpcUrl: string): PublicClient =>
  createPublicClient({ transport: http(rpcUrl, { timeout: 10_000, retryCount: 0 }) });

/** The node's newest block; the node must serve Base. Rejects if it does not answer with a block. */
export async function readHead(chain: PublicClient): Promise<Head> {
  const chainId = await chain.getChainId();
  if (chainId !== CHAIN_ID) {
    throw new WrongChainError(`BASE_RPC_URL is wrong: expected a node of chain ${CHAIN_ID}, got chain ${chainId}`);
  }
  const block = asBlock(await chain.getBlock({ blockTag: "latest" }));
  if (block === null) throw new Error("the node's newest block lacks its number, hash, or time");
  return block;
}

/**
 * Whether the node says that it still reads the chain: its newest block is then one of years ago, or the first. Not every
 * provider knows the question; one that refuses it has no node that syncs. Rejects if there is no answer.
 */
export const isSyncing = (chain: PublicClient): Promise<boolean> =>
  chain.request<{ Method: "eth_syncing"; Parameters?: undefined; ReturnType: unknown }>({ method: "eth_syncing" }).then(
    (answer: unknown) => typeof answer === "object" && answer !== null,
    (error: unknown) => {
      if (isRefusal(error)) return false;
      throw error;
    },
  );

const isRefusal = (error: unknown): boolean =>
  error instanceof RpcError ||
  error instanceof RpcRequestError ||
  (error instanceof HttpRequestError && [400, 401, 403, 404, 405, 501].includes(error.status ?? 0));

/**
 * The node's block of this number. Rejects if the node does not answer.
 * @returns null if it returns none. A block that lacks a field is none, nor is one of another number: proxies answer with
 *   `{}`, or with the newest block.
 */
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
  readonly hash?: string | null;
  readonly timestamp?: bigint;
  readonly transactions: readonly Hex[];
}

function asBlock({ number, hash, timestamp, transactions }: Answer): Block | null {
  if (typeof number !== "bigint" || typeof timestamp !== "bigint" || !isHash(hash)) return null;
  return { number: Number(number), hash, timestamp: Number(timestamp), transactions };
}

const isHash = (hash: unknown): hash is Hex => typeof hash === "string" && /^0x[0-9a-f]{64}$/i.test(hash);

import { createPublicClient, fallback, http, numberToHex, type PublicClient } from "viem";
import { type Header, headerOf, WrongAnswerError } from "../api/platform/chain/log-answers.ts";
import { CHAIN_ID, LastingError, RPC_VARIABLE } from "./ledger.ts";

export interface Block extends Header {
  readonly transactions: readonly unknown[];
}

export const connectChain = (...rpcUrls: readonly string[]): PublicClient => {
  const nodes = rpcUrls.map((url) => http(url, { timeout: 10_000, retryCount: 0 }));
  return createPublicClient({ transport: fallback(nodes, { retryCount: 0 }) });
};

/**
 * Returns the newest block of the first node that returns one. Ponder tolerates a node that does not respond.
 * @throws LastingError if one of them does not serve Base, or the first node's error if all fail
 */
export async function readHead(rpcUrls: readonly string[]): Promise<Header> {
  const heads = await Promise.allSettled(rpcUrls.map((url) => readHeadOf(connectChain(url))));
  const errors: unknown[] = heads.flatMap((head) => (head.status === "rejected" ? [head.reason] : []));
  const wrong = errors.find((error) => error instanceof LastingError);
  const found = heads.find((head) => head.status === "fulfilled");
  if (wrong !== undefined || found === undefined) throw wrong ?? errors[0];
  return found.value;
}

async function readHeadOf(chain: PublicClient): Promise<Header> {
  const chainId = await chain.getChainId();
  if (chainId !== CHAIN_ID)
    throw new LastingError(`${RPC_VARIABLE} is wrong: expected a node of chain ${CHAIN_ID}, got chain ${chainId}`);
  const head = await readBlock(chain, "latest");
  if (head === null) throw new Error("the node's newest block lacks its number, hash, or time");
  return head;
}

/** Returns a block, or null if the node does not have it or, like some proxies, returns a partial or different block. */
export async function readBlock(chain: PublicClient, number: number | "latest"): Promise<Block | null> {
  const tag = number === "latest" ? number : numberToHex(number);
  const answer = await chain.request({ method: "eth_getBlockByNumber", params: [tag, false] });
  try {
    const header = headerOf(answer);
    const isAsked = number === "latest" || header.block === number;
    return isAsked ? { ...header, transactions: answer?.transactions ?? [] } : null;
  } catch (error) {
    if (error instanceof WrongAnswerError) return null;
    throw error;
  }
}

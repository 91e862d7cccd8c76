import { decodeFunctionResult, encodeFunctionData, type Hex, multicall3Abi, type PublicClient, parseAbi } from "viem";
import type { Address } from "../wallet.ts";

/** Deployed at one address on Base, Base Sepolia and the local chains (multicall3.com). */
export const MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11";

/** A call to a view function, with a decoder for its result. */
export interface Call<T> {
  readonly target: Address;
  readonly callData: Hex;
  /** @throws BaseError if the bytes cannot be decoded as the result */
  readonly decode: (returned: Hex) => T;
}

/** The results of one node at one of its blocks. */
export interface ReadAtBlock {
  readonly number: bigint;
  /** Unix seconds. */
  readonly time: bigint;
  /** Returns the result of one of the calls. */
  readonly of: <T>(call: Call<T>) => T;
}

export interface Calls {
  readonly calls: readonly Call<unknown>[];
  /** By default, the newest block of the node that answers. */
  readonly blockNumber?: bigint;
}

const BLOCK_ABI = parseAbi([
  "function getBlockNumber() view returns (uint256)",
  "function getCurrentBlockTimestamp() view returns (uint256)",
]);

const ofBlock = (functionName: "getBlockNumber" | "getCurrentBlockTimestamp"): Call<bigint> => ({
  target: MULTICALL3,
  callData: encodeFunctionData({ abi: BLOCK_ABI, functionName }),
  decode: (data) => decodeFunctionResult({ abi: BLOCK_ABI, functionName, data }),
});
const NUMBER = ofBlock("getBlockNumber");
const TIME = ofBlock("getCurrentBlockTimestamp");

/**
 * Makes many calls in one `eth_call`, so that all results come from one node at one block. Rejects if one of the calls
 * reverts, or if the node answers at a block other than the requested one.
 */
export async function readAtBlock(client: PublicClient, { calls, blockNumber }: Calls): Promise<ReadAtBlock> {
  const asked = [...calls, NUMBER, TIME];
  const results = await client.readContract({
    address: MULTICALL3,
    abi: multicall3Abi,
    functionName: "aggregate3",
    args: [asked.map(({ target, callData }) => ({ target, callData, allowFailure: false }))],
    ...(blockNumber === undefined ? {} : { blockNumber }),
  });
  const returned = new Map(asked.map((call, place) => [call, results[place]?.returnData]));
  const of = <T>(call: Call<T>): T => {
    const data = returned.get(call);
    if (data === undefined) throw new Error("this call was not made, or the node did not answer it");
    return call.decode(data);
  };
  const number = of(NUMBER);
  if (blockNumber !== undefined && number !== blockNumber)
    throw new Error(`the request was for block ${blockNumber}, and the node answered at block ${number}`);
  return { number, time: of(TIME), of };
}

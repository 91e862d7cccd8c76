import { createPublicClient, encodeFunctionData, type Hex, http, type LocalAccount, serializeTransaction } from "viem";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { Signed } from "../payments/signing.ts";
import type { TestChain } from "./test-chain.ts";

const readers = new WeakMap<TestChain, ReturnType<typeof openBlocks>>();

/**
 * Returns a function that reads the chain's blocks from this one to its head, with their transactions. Each block is
 * read only once, unless a reorganization has replaced it.
 */
export function blocksFrom(chain: TestChain, first: number) {
  const read = readers.get(chain) ?? openBlocks(chain.rpcUrl);
  readers.set(chain, read);
  return read(first);
}

function openBlocks(rpcUrl: string) {
  // Batches requests, because separate connections would cost far more than the responses.
  const transport = http(rpcUrl, { batch: { batchSize: 100 }, timeout: 30_000 });
  const client = createPublicClient({ transport, cacheTime: 0 });
  const blockAt = (number: number) => client.getBlock({ blockNumber: BigInt(number), includeTransactions: true });
  type Block = Awaited<ReturnType<typeof blockAt>>;
  let known: readonly Block[] = [];
  /** A block's hash also vouches for all earlier blocks. */
  const isThere = async (block: Block) => (await blockAt(Number(block.number)).catch(() => null))?.hash === block.hash;
  return async (first: number): Promise<readonly Block[]> => {
    const [oldest, newest] = [known.at(0), known.at(-1)];
    const reaches = oldest !== undefined && newest !== undefined && oldest.number <= BigInt(first);
    const kept = reaches && (await isThere(newest)) ? known : [];
    const start = Number(kept.at(0)?.number ?? first);
    const numbers = Array.from(
      { length: Number(await client.getBlockNumber()) + 1 - start - kept.length },
      (_, index) => start + kept.length + index,
    );
    const blocks = [...kept, ...(await Promise.all(numbers.map(blockAt)))];
    // False if the chain was reorganized meanwhile.
    const isChain = blocks.every(({ parentHash }, index) => index === 0 || parentHash === blocks[index - 1]?.hash);
    known = isChain ? blocks : [];
    return blocks.slice(first - start);
  };
}

/** Replaces the last blocks by the same number of new ones, with only these raw transactions in them. */
export async function reorganize(
  { client }: TestChain,
  depth: number,
  kept: readonly (readonly [raw: Hex, block: number])[],
): Promise<void> {
  await client.request({ method: "anvil_reorg", params: [depth, kept] } as never);
}

/** The signed bytes of a transaction on the chain. */
export async function rawOf({ client }: TestChain, hash: Hex): Promise<Hex> {
  const { r, s, yParity, ...transaction } = await client.getTransaction({ hash });
  const { chainId, nonce, gas, to, input: data, maxFeePerGas, maxPriorityFeePerGas } = transaction;
  return serializeTransaction(
    { type: "eip1559", chainId: Number(chainId), nonce, gas, to, data, maxFeePerGas, maxPriorityFeePerGas } as never,
    { r, s, yParity: yParity ?? 0 },
  );
}

/** Signs, without sending, a transaction to USDC that outbids every other one in the pool. */
export async function rawToUsdc(
  { client, network }: TestChain,
  { by, data }: { readonly by: LocalAccount; readonly data: Hex },
): Promise<Hex> {
  return by.signTransaction({
    type: "eip1559",
    chainId: network.chainId,
    nonce: await client.getTransactionCount({ address: by.address }),
    gas: 200_000n,
    maxFeePerGas: 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 11n,
    to: network.usdc.address,
    data,
  });
}

/** Signs, without sending, a stranger's transaction with the same authorization. */
export function anotherTransaction(chain: TestChain, { authorization, signature }: Signed): Promise<Hex> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
  const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transferWithAuthorization", args });
  return rawToUsdc(chain, { by: devAccount(5), data });
}

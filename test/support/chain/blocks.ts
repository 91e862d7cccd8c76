import { createPublicClient, http } from "viem";
import type { TestChain } from "./test-chain.ts";

const readers = new WeakMap<TestChain, ReturnType<typeof openBlocks>>();

/**
 * The chain's blocks from this one to its head, with their transactions. A test may ask often: each block is read once,
 * unless a reorganization has replaced it.
 */
export function blocksFrom(chain: TestChain, first: number) {
  const read = readers.get(chain) ?? openBlocks(chain.rpcUrl);
  readers.set(chain, read);
  return read(first);
}

function openBlocks(rpcUrl: string) {
  // Many in one request: a connection each would cost far more than the answers.
  const transport = http(rpcUrl, { batch: { batchSize: 100 }, timeout: 30_000 });
  const client = createPublicClient({ transport, cacheTime: 0 });
  const blockAt = (number: number) => client.getBlock({ blockNumber: BigInt(number), includeTransactions: true });
  type Block = Awaited<ReturnType<typeof blockAt>>;
  let known: readonly Block[] = [];
  /** A block vouches for all before it. */
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
    // Not if the chain was reorganized meanwhile.
    const isChain = blocks.every(({ parentHash }, index) => index === 0 || parentHash === blocks[index - 1]?.hash);
    known = isChain ? blocks : [];
    return blocks.slice(first - start);
  };
}

import { type ChainPlan, type GeneratedChain, generateChain } from "./generated-chain.ts";
import { serveChain } from "./rpc-server.ts";

/** A generated chain that grows and is reorganized. The block `last` of its plan has to be ahead. */
export interface LiveChain extends GeneratedChain {
  readonly grow: (blocks: number) => void;
  /** Replaces so many of the newest blocks by others, and adds one. */
  readonly reorganize: (depth: number) => void;
}

/** @param head its newest block now */
export function generateLiveChain(plan: ChainPlan, head: number): LiveChain {
  /** From which block on each reorganization has replaced the chain. */
  const forks: number[] = [];
  const forkOf = (block: number) => forks.findLastIndex((first) => first <= block) + 1;
  let now = head;
  return {
    ...generateChain({ ...plan, forkOf }),
    get head() {
      return now;
    },
    grow(blocks) {
      now += blocks;
    },
    reorganize(depth) {
      forks.push(now - depth + 1);
      now += 1;
    },
  };
}

if (import.meta.main) {
  const { CHAIN_PLAN = "", HEAD } = process.env;
  const chain = generateLiveChain(JSON.parse(CHAIN_PLAN), Number(HEAD));
  const hear = (method: string, blocks: number) => {
    if (method === "bench_grow") chain.grow(blocks);
    if (method === "bench_reorganize") chain.reorganize(blocks);
  };
  const { url } = await serveChain(chain, { hear });
  console.log(`ready ${url}`);
}

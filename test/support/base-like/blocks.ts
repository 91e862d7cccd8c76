import type { TestChain } from "../chain/test-chain.ts";
import type { HeadWatch } from "./head.ts";
import type { Pool } from "./pool.ts";
import type { Profile } from "./profiles.ts";
import { quantity } from "./view.ts";

export interface BlockParts {
  readonly profile: Profile;
  readonly chain: TestChain;
  readonly watch: HeadWatch;
  readonly pool: () => Pool;
}

/** The chain's next blocks: when they are made, and what they cost. */
export interface Blocks {
  /** The base fee of the next block, in wei. */
  readonly baseFee: () => bigint;
  readonly ask: (baseFee: bigint) => Promise<void>;
  /** Once the chain has made a block by itself. */
  readonly made: () => Promise<void>;
  /** Makes blocks up to this time in milliseconds, with each transaction that was put off when it is due. */
  readonly until: (ms: number) => Promise<void>;
}

export async function openBlocks({ profile, chain: { client }, watch, pool }: BlockParts): Promise<Blocks> {
  const blockSeconds = BigInt(profile.blockSeconds);
  let baseFee = profile.baseFee;
  const headTime = () => watch.asOf(0).time;
  const setFee = () =>
    client.request({ method: "anvil_setNextBlockBaseFeePerGas", params: [quantity(baseFee)] } as never);
  const made = async () => {
    await setFee();
    await watch.look();
  };
  const make = async (count: bigint) => {
    if (count > 1n) await client.mine({ blocks: Number(count) - 1 });
    // The chain lets the fee fall in empty blocks, below Base's minimum.
    await setFee();
    await client.mine({ blocks: 1 });
    await made();
    await pool().drain();
  };
  await setFee();
  return {
    baseFee: () => baseFee,
    ask: async (next) => {
      baseFee = next;
      await setFee();
    },
    made,
    until: async (ms) => {
      const missing = () => (BigInt(Math.floor(ms / 1000)) - headTime()) / blockSeconds;
      for (let left = missing(); left > 0n; left = missing()) {
        const due = pool().nextDue();
        const before = due === null ? left : (due - headTime() + blockSeconds - 1n) / blockSeconds;
        await make(before < left && before > 0n ? before : left);
      }
    },
  };
}

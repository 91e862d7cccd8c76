import type { TestChain } from "../chain/test-chain.ts";
import { type BaseLike, startBaseLike } from "./base-like.ts";

/** Longer than `finalized` is behind the head. */
const FINAL_MINUTES = 16;

export interface ChainLikeBase extends TestChain {
  readonly base: BaseLike;
}

/**
 * A chain like Base in the place of a friendly one: services reach it through the provider's front, and the test's own
 * client reads the chain itself. It starts in the past, so that it is never ahead of the clock.
 */
export async function startChainLikeBase(roomMinutes: number): Promise<ChainLikeBase> {
  const base = await startBaseLike({ behindMinutes: roomMinutes });
  const { chain } = base;
  const blockMinutes = base.blockSeconds / 60;
  return {
    ...chain,
    base,
    rpcUrl: base.url,
    client: {
      ...chain.client,
      // What waits, waits in the front's pool, not in the chain's.
      setAutomine: async (isOn: boolean) => (isOn ? base.resume() : base.halt()),
      getTxpoolStatus: async () => ({ pending: base.pool.waiting().length, queued: 0 }),
    },
    // A payer pays once every node knows its balance.
    fund: (account, atomic) => chain.fund(account, atomic).then(base.caughtUp),
    caughtUp: base.caughtUp,
    mine: (blocks = 1) => base.pass(blocks * blockMinutes),
    increaseTime: (seconds) => base.pass(seconds / 60),
    finalize: () => base.pass(FINAL_MINUTES),
    stop: base.stop,
  };
}

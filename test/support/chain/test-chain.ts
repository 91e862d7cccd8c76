import { type Address, encodeFunctionData, type Hex } from "viem";
import type { NetworkFacts } from "../../../api/platform/networks.ts";
import type { Anvil, AnvilClient } from "../../../scripts/embedded/anvil.ts";
import { administer, USDC_ABI } from "../../../scripts/embedded/usdc.ts";

/**
 * A separate chain for the test with Circle's USDC, where the ten development accounts hold 10,000 USDC and 100 ETH.
 */
export interface TestChain extends Anvil {
  readonly network: NetworkFacts;
  readonly mine: (blocks?: number) => Promise<void>;
  /** Makes everything mined final. */
  readonly finalize: () => Promise<void>;
  /** Advances the clock and mines a block. */
  readonly increaseTime: (seconds: number) => Promise<void>;
  readonly setBalance: (account: Address, wei: bigint) => Promise<void>;
  /** USDC in atomic units. */
  readonly usdcBalance: (account: Address) => Promise<bigint>;
  /** Mints USDC, in atomic units. */
  readonly fund: (account: Address, atomic: bigint) => Promise<void>;
  readonly pause: () => Promise<void>;
  readonly unpause: () => Promise<void>;
  readonly blacklist: (account: Address) => Promise<void>;
  readonly unblacklist: (account: Address) => Promise<void>;
  /** Resolves once every node of the chain has the mined blocks. */
  readonly caughtUp: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** A started chain with USDC, for tests. */
export const asTestChain = (anvil: Anvil, network: NetworkFacts, slotsInAnEpoch = 1): TestChain => ({
  ...anvil,
  network,
  ...clock(anvil.client),
  ...usdc(anvil.client, network),
  finalize: () => anvil.client.mine({ blocks: 2 * slotsInAnEpoch + 1 }),
  caughtUp: async () => undefined,
  stop: () => anvil.process.stop(),
});

const clock = (client: AnvilClient) => ({
  mine: (blocks = 1) => client.mine({ blocks }),
  increaseTime: async (seconds: number) => {
    await client.increaseTime({ seconds });
    await client.mine({ blocks: 1 });
  },
  setBalance: (address: Address, value: bigint) => client.setBalance({ address, value }),
});

function usdc(client: AnvilClient, network: NetworkFacts) {
  let last: Promise<unknown> = Promise.resolve();
  // Runs one change after another, because simultaneous ones could get the same nonce.
  const change = (data: Hex) => {
    const next = last.then(() => administer(client, network, [data]));
    last = next.catch(() => undefined);
    return next;
  };
  return {
    usdcBalance: (account: Address) =>
      client.readContract({ address: network.usdc.address, abi: USDC_ABI, functionName: "balanceOf", args: [account] }),
    fund: (to: Address, atomic: bigint) =>
      change(encodeFunctionData({ abi: USDC_ABI, functionName: "mint", args: [to, atomic] })),
    pause: () => change(encodeFunctionData({ abi: USDC_ABI, functionName: "pause" })),
    unpause: () => change(encodeFunctionData({ abi: USDC_ABI, functionName: "unpause" })),
    blacklist: (account: Address) =>
      change(encodeFunctionData({ abi: USDC_ABI, functionName: "blacklist", args: [account] })),
    unblacklist: (account: Address) =>
      change(encodeFunctionData({ abi: USDC_ABI, functionName: "unBlacklist", args: [account] })),
  };
}

import { type Address, encodeFunctionData, type Hex } from "viem";
import { inject } from "vitest";
import { NETWORKS, type Network, type NetworkFacts } from "../../../api/kernel/networks.ts";
import { type Anvil, type AnvilClient, startAnvil } from "../../../scripts/embedded/anvil.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { administer, USDC_ABI } from "../../../scripts/embedded/usdc.ts";

export interface TestChainPlan {
  /** Default Base. */
  readonly network?: Network;
  /**
   * Default `auto`: one block per transaction and none in between. `everySeconds` adds empty blocks over time. With
   * `manual` nothing is mined before `mine`, so start `fund`, `pause` and the like first, then mine, then await them.
   */
  readonly mining?: "auto" | "manual" | { readonly everySeconds: number };
  /** `safe` is this many blocks behind the head, `finalized` twice as many. Default 1. */
  readonly slotsInAnEpoch?: number;
}

/**
 * A separate chain for the test with Circle's USDC, where the ten development accounts hold 10,000 USDC and 100 ETH.
 */
export interface TestChain extends Anvil {
  readonly network: NetworkFacts;
  readonly mine: (blocks?: number) => Promise<void>;
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
  readonly stop: () => Promise<void>;
}

export async function startTestChain(plan: TestChainPlan = {}): Promise<TestChain> {
  const network = NETWORKS[plan.network ?? "eip155:8453"];
  const state = inject("chainStates")[network.chainId];
  if (state === undefined) throw new Error(`No prepared state for chain ${network.chainId}.`);
  const options = [
    "--load-state",
    state,
    "--slots-in-an-epoch",
    String(plan.slotsInAnEpoch ?? 1),
    ...miningOptions(plan.mining ?? "auto"),
  ];
  const anvil = await startAnvil({ network, port: await freePort(), options });
  // The prepared state, and with it the head, may be many minutes old.
  if (plan.mining !== "manual") await anvil.client.mine({ blocks: 1 });
  return {
    ...anvil,
    network,
    ...clock(anvil.client),
    ...usdc(anvil.client, network),
    stop: () => anvil.process.stop(),
  };
}

function miningOptions(mining: NonNullable<TestChainPlan["mining"]>): readonly string[] {
  if (mining === "auto") return [];
  if (mining === "manual") return ["--no-mining"];
  return ["--mixed-mining", "--block-time", String(mining.everySeconds)];
}

const clock = (client: AnvilClient) => ({
  mine: (blocks = 1) => client.mine({ blocks }),
  increaseTime: async (seconds: number) => {
    await client.increaseTime({ seconds });
    await client.mine({ blocks: 1 });
  },
  setBalance: (address: Address, value: bigint) => client.setBalance({ address, value }),
});

function usdc(client: AnvilClient, network: NetworkFacts) {
  const change = (data: Hex) => administer(client, network, [data]);
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

import { inject } from "vitest";
import { NETWORKS, type Network } from "../../../api/platform/networks.ts";
import { startAnvil } from "../../../scripts/embedded/anvil.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { startChainLikeBase } from "../base-like/base-like.ts";
import { asTestChain, type TestChain } from "./test-chain.ts";

export type { TestChain } from "./test-chain.ts";

export interface TestChainPlan {
  /** Default Base. */
  readonly network?: Network;
  /**
   * Default `auto`: one block per transaction and none in between. `everySeconds` adds empty blocks over time. With
   * `manual` nothing is mined before `mine`, so start `fund`, `pause`, and similar calls first, then mine, then await
   * them.
   */
  readonly mining?: "auto" | "manual" | { readonly everySeconds: number };
  /** `safe` is this number of blocks behind the head, and `finalized` twice as many. Default 1. */
  readonly slotsInAnEpoch?: number;
  /**
   * The distance from the clock, in minutes, at which a chain like Base starts in the past. It must cover the time that
   * the test adds with `finalize` and `increaseTime`, so that the chain does not get ahead of the clock. Default 0.
   */
  readonly roomMinutes?: number;
}

export async function startTestChain(plan: TestChainPlan = {}): Promise<TestChain> {
  const network = NETWORKS[plan.network ?? "eip155:8453"];
  if (inject("likeBase") && network.key === "base" && plan.mining === undefined)
    return startChainLikeBase(plan.roomMinutes ?? 0);
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
  // The prepared state, and so the head, may be many minutes old.
  if (plan.mining !== "manual") await anvil.client.mine({ blocks: 1 });
  return asTestChain(anvil, network, plan.slotsInAnEpoch);
}

function miningOptions(mining: NonNullable<TestChainPlan["mining"]>): readonly string[] {
  if (mining === "auto") return [];
  if (mining === "manual") return ["--no-mining"];
  return ["--mixed-mining", "--block-time", String(mining.everySeconds)];
}

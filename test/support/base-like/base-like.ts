import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "viem";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { startAnvil } from "../../../scripts/embedded/anvil.ts";
import { DEV_FUNDS } from "../../../scripts/embedded/chain.ts";
import { installCommercePayments } from "../../../scripts/embedded/commerce-payments.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { fundAccounts, installUsdc } from "../../../scripts/embedded/usdc.ts";
import { askNode, type Call, type Fault, type Reply, replyTo, serveNode } from "../chain/rpc.ts";
import { deploySettlementBatch } from "../chain/settlement-batch.ts";
import { asTestChain, type TestChain } from "../chain/test-chain.ts";
import { type Backend, openBackends } from "./backends.ts";
import { openBlocks } from "./blocks.ts";
import { type CallCount, countCalls } from "./calls.ts";
import { type HeadWatch, watchHead } from "./head.ts";
import { type Limits, limitedLogs, openLimits } from "./limits.ts";
import { openPool, type Pool } from "./pool.ts";
import { BASE, type Profile } from "./profiles.ts";
import { keepTime, type Time } from "./time.ts";
import { quantity } from "./view.ts";

export interface BaseLikePlan {
  /** Default `BASE`. */
  readonly profile?: Profile;
  /**
   * How far the head is behind the clock once the chain has started, in minutes: room for a process with the real
   * clock, which must not see a chain that is ahead of it. Default 0, for a service that takes its clock from `now`.
   */
  readonly behindMinutes?: number;
  /** The chain's first block. Default 0. */
  readonly firstBlock?: number;
}

/** Base as a service meets it: a chain of our own behind the front of a provider. */
export interface BaseLike extends Omit<Time, "isHalted"> {
  /** The base fee from the next block on, as a multiple of a quiet day's. */
  readonly fees: (times: number) => Promise<void>;
  /** The provider's URL. */
  readonly url: string;
  /** The chain itself, for the test: always right, counted nowhere. Its transactions are mined at once, even in a halt. */
  readonly chain: TestChain;
  /** Both networks' node URLs in a service's configuration. */
  readonly rpcUrls: Readonly<Record<"eip155:8453" | "eip155:84532", string>>;
  readonly blockSeconds: number;
  readonly calls: CallCount;
  readonly pool: Pick<Pool, "fate" | "forget" | "waiting">;
  /** Changes one of the nodes behind the URL, counted from 0. */
  readonly backend: (index: number, to: Partial<Backend>) => void;
  readonly busy: Limits["busy"];
  /** Resolves once every node behind the URL has what the chain has now. */
  readonly caughtUp: () => Promise<void>;
  /** What else every call meets, before anything of the above; null ends it. */
  readonly become: (fault: Fault | null) => void;
  readonly stop: () => Promise<void>;
}

/** The last block's state is known back to the final one, and a little further. */
const STATES_KEPT = "600";

export async function startBaseLike(plan: BaseLikePlan = {}): Promise<BaseLike> {
  const { profile = BASE, behindMinutes = 0, firstBlock = 0 } = plan;
  const chain = await startChain({ profile, behindMinutes, firstBlock });
  const ask = askNode(chain.rpcUrl);
  const asked = (method: string, ...params: readonly unknown[]) => ask({ id: 0, method, params });
  const watch = await watchHead(chain.rpcUrl);
  const blocks = await openBlocks({ profile, chain, watch, pool: () => pool });
  const time = keepTime({ watch, blocks, pool: () => pool });
  const pool: Pool = openPool({
    profile,
    ask: asked,
    baseFee: blocks.baseFee,
    blockTime: () => watch.asOf(0).time + BigInt(profile.blockSeconds),
    isHalted: time.isHalted,
    mined: blocks.made,
  });
  const calls = countCalls();
  const front = await startFront({ profile, watch, pool, ask, calls });
  return {
    ...time,
    fees: async (times) => {
      await blocks.ask((profile.baseFee * BigInt(Math.round(times * 100))) / 100n);
      await time.pass(profile.blockSeconds / 60);
    },
    ...front,
    chain,
    rpcUrls: { "eip155:8453": front.url, "eip155:84532": front.url },
    blockSeconds: profile.blockSeconds,
    calls,
    pool,
    caughtUp: async () => {
      await watch.look();
      await sleep(Math.max(...profile.backends.map(({ lagMs }) => lagMs)));
    },
    stop: async () => {
      front.stop();
      await chain.stop();
    },
  };
}

/** USDC and funded accounts on a chain whose newest final block has its state, with the head where it is wanted. */
async function startChain({ profile, behindMinutes, firstBlock }: Required<BaseLikePlan>): Promise<TestChain> {
  const network = NETWORKS["eip155:8453"];
  const start =
    Math.floor(Date.now() / 1000) - behindMinutes * 60 - (profile.finalizedBehind + 60) * profile.blockSeconds;
  const options = ["--timestamp", String(start), "--number", String(firstBlock), "--prune-history", STATES_KEPT];
  const anvil = await startAnvil({ network, port: await freePort(), options });
  const { client } = anvil;
  await client.request({ method: "anvil_setBlockTimestampInterval", params: [profile.blockSeconds] } as never);
  await installUsdc(client, network);
  await fundAccounts(client, network, DEV_FUNDS);
  await deploySettlementBatch(client);
  await installCommercePayments(client);
  const first = firstBlock - Number(await client.getBlockNumber());
  await client.mine({ blocks: profile.finalizedBehind + 60 + first });
  return asTestChain(anvil, network);
}

interface FrontParts {
  readonly profile: Profile;
  readonly watch: HeadWatch;
  readonly pool: Pool;
  readonly ask: (call: Call) => Promise<Reply>;
  readonly calls: ReturnType<typeof countCalls>;
}

async function startFront({ profile, watch, pool, ask, calls }: FrontParts) {
  const head = () => watch.asOf(0).number;
  const backends = openBackends(profile, watch);
  const limits = openLimits(profile, head);
  const logs = limitedLogs(profile, head);
  let fault: Fault | null = null;

  const answer = async (call: Call): Promise<Reply | null> => {
    await watch.look();
    const backend = backends.next();
    const provider: Fault = async (given) => (await pooled(pool, profile, given)) ?? backend(given, ask);
    const limited = (given: Call) =>
      logs(given, async (passed) => (await provider(passed, ask)) ?? replyTo(passed, null));
    return fault === null
      ? limited(call)
      : fault(call, async (given) => (await limited(given)) ?? replyTo(given, null));
  };
  const server = await serveNode({
    answer,
    refuse: (asked) => {
      calls.count(asked);
      return limits.refuse(asked);
    },
  });
  return {
    ...server,
    backend: backends.change,
    busy: limits.busy,
    become: (next: Fault | null) => {
      fault = next;
    },
  };
}

/** What the pool answers instead of a node. */
async function pooled(pool: Pool, profile: Profile, call: Call): Promise<Reply | null> {
  const [first, second] = call.params ?? [];
  if (call.method === "eth_sendRawTransaction") return pool.send(call);
  if (call.method === "eth_maxPriorityFeePerGas") return replyTo(call, quantity(profile.priorityFee));
  if (call.method === "eth_getTransactionCount" && second === "pending")
    return replyTo(call, quantity(BigInt(await pool.pendingCount(String(first)))));
  const shown = call.method === "eth_getTransactionByHash" ? pool.shown(String(first) as Hex) : null;
  return shown === null ? null : replyTo(call, shown);
}

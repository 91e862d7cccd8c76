import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "viem";
import { eachNetwork, NETWORKS, type Network } from "../../../api/platform/networks.ts";
import { startAnvil } from "../../../scripts/embedded/anvil.ts";
import { DEV_FUNDS } from "../../../scripts/embedded/chain.ts";
import { installCommercePayments } from "../../../scripts/embedded/commerce-payments.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { fundAccounts, installUsdc } from "../../../scripts/embedded/usdc.ts";
import { deploySettlementBatch } from "../chain/contracts.ts";
import { askNode, type Call, type Fault, type Refusal, type Reply, refuse, replyTo, serveNode } from "../chain/rpc.ts";
import { asTestChain, type TestChain } from "../chain/test-chain.ts";
import { openPool, type Pool } from "./pool.ts";
import { BASE, type Profile, type ProviderError, REFUSALS } from "./profiles.ts";
import { type HeadWatch, keepTime, openBlocks, positionAt, type Time, watchHead } from "./time.ts";
import { blockOf, type Filter, numberOf, quantity, viewAt } from "./view.ts";

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
  readonly rpcUrls: Readonly<Record<Network, string>>;
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
    rpcUrls: eachNetwork(() => front.url),
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

/** One of the nodes behind the URL. */
export interface Backend {
  /** Real milliseconds behind the chain. */
  readonly lagMs: number;
  /** Blocks behind the chain, on top of that; it never catches up with these. */
  readonly lagBlocks: bigint;
  /** It has no block after this one; null: it follows the chain. */
  readonly standsAt: bigint | null;
  /** Blocks, first and last, that it does not have: no logs, no receipts. */
  readonly holes: readonly (readonly [bigint, bigint])[];
}

export interface Backends {
  /** Changes one, counted from 0. */
  readonly change: (index: number, to: Partial<Backend>) => void;
  /** The backend whose turn it is. */
  readonly next: () => Fault;
}

function openBackends(profile: Profile, watch: HeadWatch): Backends {
  const list = profile.backends.map(({ lagMs }): Backend => ({ lagMs, lagBlocks: 0n, standsAt: null, holes: [] }));
  let turn = 0;
  return {
    change: (index, to) => {
      const before = list[index];
      if (before === undefined) throw new Error(`There is no backend ${index}.`);
      list[index] = { ...before, ...to };
    },
    next: () => {
      const backend = list[turn++ % list.length] as Backend;
      return async (call, pass) => {
        const head = backend.standsAt ?? watch.asOf(backend.lagMs).number - backend.lagBlocks;
        const view = viewAt(positionAt(head > 0n ? head : 0n, profile));
        const reply = await view(call, pass);
        return reply === null ? null : withHoles(backend.holes, call, reply);
      };
    },
  };
}

function withHoles(holes: Backend["holes"], call: Call, reply: Reply): Reply {
  const isMissing = (block: bigint | null) =>
    block !== null && holes.some(([first, last]) => block >= first && block <= last);
  if (holes.length === 0 || reply.result === undefined || reply.result === null) return reply;
  if (call.method === "eth_getLogs")
    return replyTo(
      call,
      (reply.result as { readonly blockNumber: string }[]).filter(
        ({ blockNumber }) => !isMissing(numberOf(blockNumber)),
      ),
    );
  return isMissing(blockOf(reply.result)) ? replyTo(call, null) : reply;
}

/** What a provider refuses of a whole HTTP request. */
export interface Limits {
  /** The next HTTP requests get this status instead of an answer. */
  readonly busy: (status: keyof typeof REFUSALS, times: number) => void;
  readonly refuse: (calls: readonly Call[]) => Refusal | null;
}

function openLimits({ batch, logs }: Profile, head: () => bigint): Limits {
  let status: keyof typeof REFUSALS = 429;
  let left = 0;
  return {
    busy: (next, times) => {
      status = next;
      left = times;
    },
    refuse: (calls) => {
      if (left > 0) {
        left -= 1;
        const headers: Record<string, string> = status === 429 ? { "retry-after": "1" } : {};
        return { status, headers, body: REFUSALS[status] };
      }
      if (calls.length > batch.max) return failed(batch.tooManyStatus, null, batch.tooMany);
      const [call] = calls;
      if (calls.length !== 1 || call === undefined) return null;
      const wide = tooWide(logs, call, head());
      return wide === null ? null : failed(logs.tooManyBlocksStatus, call.id, wide);
    },
  };
}

const failed = (status: number, id: number | null, error: ProviderError): Refusal => ({
  status,
  body: JSON.stringify({ jsonrpc: "2.0", id, error }),
});

/** Why this call asks for logs of too many blocks; null if it does not. */
function tooWide(logs: Profile["logs"], { method, params }: Call, head: bigint): ProviderError | null {
  const { fromBlock, toBlock, blockHash } = (params?.[0] ?? {}) as Filter;
  if (method !== "eth_getLogs" || blockHash !== undefined) return null;
  const first = fromBlock === "earliest" ? 0n : (numberOf(fromBlock) ?? head);
  const last = numberOf(toBlock) ?? head;
  return last - first + 1n > logs.maxBlocks ? logs.tooManyBlocks(first) : null;
}

/** Refuses `eth_getLogs` that asks for too many blocks, or would return too many logs. */
const limitedLogs =
  ({ logs }: Profile, head: () => bigint): Fault =>
  async (call, pass) => {
    const wide = tooWide(logs, call, head());
    if (wide !== null) return refuse(call, wide.code, wide.message);
    const reply = await pass(call);
    const isTooMuch = call.method === "eth_getLogs" && ((reply.result ?? []) as unknown[]).length > logs.maxLogs;
    return isTooMuch ? refuse(call, logs.tooManyLogs.code, logs.tooManyLogs.message) : reply;
  };

/** What was asked of the provider, by method; items of a batch count one by one. */
export interface CallCount {
  readonly byMethod: () => Readonly<Record<string, number>>;
  readonly total: () => number;
  /** HTTP requests, batches as one. */
  readonly requests: () => number;
  readonly reset: () => void;
}

export interface CallCounter extends CallCount {
  readonly count: (calls: readonly Call[]) => void;
}

function countCalls(): CallCounter {
  let requests = 0;
  const counts = new Map<string, number>();
  return {
    byMethod: () => Object.fromEntries([...counts].sort()),
    total: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
    requests: () => requests,
    reset: () => {
      requests = 0;
      counts.clear();
    },
    count: (calls) => {
      requests += 1;
      for (const { method } of calls) counts.set(method, (counts.get(method) ?? 0) + 1);
    },
  };
}

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

import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "viem";
import { eachNetwork, NETWORKS, type Network } from "../../../api/platform/networks.ts";
import { startAnvil } from "../../../scripts/embedded/anvil.ts";
import { DEV_FUNDS } from "../../../scripts/embedded/chain.ts";
import { installCommercePayments } from "../../../scripts/embedded/install-contracts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { fundAccounts, installUsdc } from "../../../scripts/embedded/usdc.ts";
import { deploySettlementBatch } from "../chain/contracts.ts";
import { askNode, type Call, type Fault, type Refusal, type Reply, refuse, replyTo, serveNode } from "../chain/rpc.ts";
import { asTestChain, type TestChain } from "../chain/test-chain.ts";
import { openPool, type Pool } from "./pool.ts";
import { BASE, type Profile, type ProviderError, REFUSALS } from "./profiles.ts";
import { type HeadWatch, keepTime, openBlocks, positionAt, type Time, watchHead } from "./time.ts";
import { type Filter, numberOf, quantity, viewAt } from "./view.ts";

export interface BaseLikePlan {
  /** Default `BASE`. */
  readonly profile?: Profile;
  /**
   * The head's distance from the clock after the start, in minutes. A process with the real clock needs it, because it
   * must not see a chain ahead of its clock. Default 0, for a service whose clock is `now`.
   */
  readonly behindMinutes?: number;
}

/** A local chain that behaves like Base behind a provider's front end. */
export interface BaseLike extends Omit<Time, "isHalted"> {
  /** Sets the base fee from the next block on, as a multiple of a quiet day's. */
  readonly fees: (times: number) => Promise<void>;
  /** The provider's URL. */
  readonly url: string;
  /**
   * The chain itself, for the test. It is always correct and counts no calls. Its transactions are mined immediately,
   * even in a halt.
   */
  readonly chain: TestChain;
  /** The node URLs of both networks for a service's configuration. */
  readonly rpcUrls: Readonly<Record<Network, string>>;
  readonly blockSeconds: number;
  readonly calls: CallCount;
  readonly pool: Pick<Pool, "treat" | "forget" | "waiting">;
  /** Changes one of the nodes behind the URL, counted from 0. */
  readonly backend: (index: number, to: Partial<Backend>) => void;
  readonly busy: Limits["busy"];
  /** Resolves once every node behind the URL has the chain's current state. */
  readonly caughtUp: () => Promise<void>;
  /** Adds a fault that every call meets first, until null removes it. */
  readonly become: (fault: Fault | null) => void;
  readonly stop: () => Promise<void>;
}

/** Enough recent states to reach slightly behind the final block. */
const STATES_KEPT = "600";

export async function startBaseLike(plan: BaseLikePlan = {}): Promise<BaseLike> {
  const { profile = BASE, behindMinutes = 0 } = plan;
  const chain = await startChain({ profile, behindMinutes });
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

/**
 * Starts a chain with USDC and funded accounts, whose newest final block has its state and whose head is in the right
 * place.
 */
async function startChain({ profile, behindMinutes }: Required<BaseLikePlan>): Promise<TestChain> {
  const network = NETWORKS["eip155:8453"];
  const start =
    Math.floor(Date.now() / 1000) - behindMinutes * 60 - (profile.finalizedBehind + 60) * profile.blockSeconds;
  const options = ["--timestamp", String(start), "--prune-history", STATES_KEPT];
  const anvil = await startAnvil({ network, port: await freePort(), options });
  const { client } = anvil;
  await client.request({ method: "anvil_setBlockTimestampInterval", params: [profile.blockSeconds] } as never);
  await installUsdc(client, network);
  await fundAccounts(client, network, DEV_FUNDS);
  await deploySettlementBatch(client);
  await installCommercePayments(client);
  await client.mine({ blocks: profile.finalizedBehind + 60 - Number(await client.getBlockNumber()) });
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

/** The pool's reply to a call, or null if a node must reply. */
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
  /** The block after which it has none, or null while it follows the chain. */
  readonly lastBlock: bigint | null;
}

export interface Backends {
  /** Changes one backend, counted from 0. */
  readonly change: (index: number, to: Partial<Backend>) => void;
  /** The next backend in turn. */
  readonly next: () => Fault;
}

function openBackends(profile: Profile, watch: HeadWatch): Backends {
  const list = profile.backends.map(({ lagMs }): Backend => ({ lagMs, lastBlock: null }));
  let turn = 0;
  return {
    change: (index, to) => {
      const before = list[index];
      if (before === undefined) throw new Error(`There is no backend ${index}.`);
      list[index] = { ...before, ...to };
    },
    next: () => {
      const backend = list[turn++ % list.length] as Backend;
      return (call, pass) => {
        const head = backend.lastBlock ?? watch.asOf(backend.lagMs).number;
        return viewAt(positionAt(head, profile))(call, pass);
      };
    },
  };
}

/** A provider's refusals of whole HTTP requests. */
export interface Limits {
  /** Makes the next HTTP requests fail with this status. */
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

/** Returns the error for a call that requests logs of too many blocks, or null. */
function tooWide(logs: Profile["logs"], { method, params }: Call, head: bigint): ProviderError | null {
  const { fromBlock, toBlock, blockHash } = (params?.[0] ?? {}) as Filter;
  if (method !== "eth_getLogs" || blockHash !== undefined) return null;
  const first = fromBlock === "earliest" ? 0n : (numberOf(fromBlock) ?? head);
  const last = numberOf(toBlock) ?? head;
  return last - first + 1n > logs.maxBlocks ? logs.tooManyBlocks(first) : null;
}

/** Refuses `eth_getLogs` with too many blocks in its request or too many logs in its response. */
const limitedLogs =
  ({ logs }: Profile, head: () => bigint): Fault =>
  async (call, pass) => {
    const wide = tooWide(logs, call, head());
    if (wide !== null) return refuse(call, wide.code, wide.message);
    const reply = await pass(call);
    const isTooMuch = call.method === "eth_getLogs" && ((reply.result ?? []) as unknown[]).length > logs.maxLogs;
    return isTooMuch ? refuse(call, logs.tooManyLogs.code, logs.tooManyLogs.message) : reply;
  };

/** The number of calls to the provider by method. Items of a batch count separately. */
export interface CallCount {
  readonly byMethod: () => Readonly<Record<string, number>>;
  readonly total: () => number;
  readonly reset: () => void;
}

function countCalls() {
  const counts = new Map<string, number>();
  return {
    byMethod: () => Object.fromEntries([...counts].sort()),
    total: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
    reset: () => counts.clear(),
    count: (calls: readonly Call[]): void => {
      for (const { method } of calls) counts.set(method, (counts.get(method) ?? 0) + 1);
    },
  };
}

/** Longer than the distance of `finalized` from the head. */
const FINAL_MINUTES = 16;

export interface ChainLikeBase extends TestChain {
  readonly base: BaseLike;
}

/**
 * Starts a chain like Base in place of an ordinary one. Services reach it through the provider's front end, and the
 * test's own client reads the chain directly. It starts in the past, so it is never ahead of the clock.
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
      // Transactions wait in the front end's pool, not in the chain's.
      setAutomine: async (isOn: boolean) => (isOn ? base.resume() : base.halt()),
      getTxpoolStatus: async () => ({ pending: base.pool.waiting().length, queued: 0 }),
    },
    // Resolves after every node has the payer's balance.
    fund: (account, atomic) => chain.fund(account, atomic).then(base.caughtUp),
    caughtUp: base.caughtUp,
    mine: (blocks = 1) => base.pass(blocks * blockMinutes),
    increaseTime: (seconds) => base.pass(seconds / 60),
    finalize: () => base.pass(FINAL_MINUTES),
    stop: base.stop,
  };
}

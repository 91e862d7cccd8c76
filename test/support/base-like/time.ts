import { askNode, type Call } from "../chain/rpc.ts";
import type { TestChain } from "../chain/test-chain.ts";
import type { Pool } from "./pool.ts";
import type { Profile } from "./profiles.ts";
import { type Position, quantity } from "./view.ts";

export interface TimeParts {
  readonly watch: HeadWatch;
  readonly blocks: Blocks;
  readonly pool: () => Pool;
}

/** The chain's time. It runs like any clock, and the test can advance it. */
export interface Time {
  /** The clock of a service on this chain. */
  readonly now: () => Date;
  /** The same clock, in Unix seconds. */
  readonly unixNow: () => bigint;
  /** Advances time by minutes, with a block every two seconds, or none in a halt. */
  readonly pass: (minutes: number) => Promise<void>;
  /** Stops blocks until `resume`. Transactions wait in the pool. */
  readonly halt: () => void;
  /** Mines the waiting transactions, then blocks two seconds apart until the chain has caught up with the clock. */
  readonly resume: () => Promise<void>;
  readonly isHalted: () => boolean;
}

export function keepTime({ watch, blocks, pool }: TimeParts): Time {
  let isHalted = false;
  let clock = { ms: 0, set: performance.now() };
  /** Runs on from the head, wherever that is. */
  const nowMs = () => {
    const [head, running] = [Number(watch.asOf(0).time) * 1000, clock.ms + performance.now() - clock.set];
    if (head > running) clock = { ms: head, set: performance.now() };
    return Math.max(head, running);
  };
  nowMs();
  return {
    now: () => new Date(nowMs()),
    unixNow: () => BigInt(Math.floor(nowMs() / 1000)),
    pass: async (minutes) => {
      const ms = nowMs() + minutes * 60_000;
      if (!isHalted) await blocks.until(ms);
      clock = { ms, set: performance.now() };
    },
    halt: () => {
      isHalted = true;
    },
    resume: async () => {
      isHalted = false;
      await pool().drain();
      await blocks.until(nowMs());
    },
    isHalted: () => isHalted,
  };
}

export interface BlockParts {
  readonly profile: Profile;
  readonly chain: TestChain;
  readonly watch: HeadWatch;
  readonly pool: () => Pool;
}

/** The chain's next blocks: their times and their fees. */
export interface Blocks {
  /** The base fee of the next block, in wei. */
  readonly baseFee: () => bigint;
  readonly ask: (baseFee: bigint) => Promise<void>;
  /** Called after the chain has made a block without a request. */
  readonly made: () => Promise<void>;
  /** Makes blocks up to this time in milliseconds, and mines each delayed transaction when it is due. */
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
    // The chain would let the fee fall below Base's minimum in empty blocks.
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

const LATEST: Call = { id: 0, method: "eth_getBlockByNumber", params: ["latest", false] };

interface Seen {
  readonly number: bigint;
  /** Unix seconds. */
  readonly time: bigint;
  readonly at: number;
}

/** The chain's current head and its recent ones. */
export interface HeadWatch {
  /** Reads the head. */
  readonly look: () => Promise<Seen>;
  /** The head as read this number of real milliseconds ago or earlier. */
  readonly asOf: (lagMs: number) => Seen;
}

export async function watchHead(rpcUrl: string): Promise<HeadWatch> {
  const ask = askNode(rpcUrl);
  let seen: Seen[] = [];
  const look = async () => {
    const { number, timestamp } = (await ask(LATEST)).result as Record<"number" | "timestamp", string>;
    const found = { number: BigInt(number), time: BigInt(timestamp), at: performance.now() };
    const last = seen.at(-1);
    if (last === undefined || last.number < found.number) seen.push(found);
    // After a reorganization, no backend remembers the earlier blocks.
    else if (last.number > found.number) seen = [found];
    if (seen.length > 2_000) seen = seen.slice(-1_000);
    return seen.at(-1) ?? found;
  };
  await look();
  return {
    look,
    asOf: (lagMs) => {
      const moment = performance.now() - lagMs;
      return (seen.findLast(({ at }) => at <= moment) ?? seen[0]) as Seen;
    },
  };
}

const notNegative = (number: bigint): bigint => (number > 0n ? number : 0n);

/** The position of a node with this head. */
export const positionAt = (
  head: bigint,
  { safeBehind, finalizedBehind }: { readonly safeBehind: number; readonly finalizedBehind: number },
): Position => ({
  head,
  safe: notNegative(head - BigInt(safeBehind)),
  finalized: notNegative(head - BigInt(finalizedBehind)),
});

import type { Blocks } from "./blocks.ts";
import type { HeadWatch } from "./head.ts";
import type { Pool } from "./pool.ts";

export interface TimeParts {
  readonly watch: HeadWatch;
  readonly blocks: Blocks;
  readonly pool: () => Pool;
}

/** The chain's time: it runs like any clock, and besides as far as the test lets it pass. */
export interface Time {
  /** The clock of a service on this chain. */
  readonly now: () => Date;
  /** Likewise, in Unix seconds. */
  readonly unixNow: () => bigint;
  /** Lets minutes pass: blocks every two seconds, or none in a halt. */
  readonly pass: (minutes: number) => Promise<void>;
  /** No block until `resume`; transactions wait in the pool. */
  readonly halt: () => void;
  /** The waiting transactions are mined, then blocks two seconds apart until the chain has caught up with the clock. */
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

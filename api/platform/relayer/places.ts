import PQueue from "p-queue";
import type { PublicClient } from "viem";

/**
 * Nodes keep this many unmined transactions of one account (`txpool.accountslots` of geth and reth) and may refuse
 * more.
 */
export const PLACES = 16;

/**
 * The kind of a transaction. Each lane of an account has its own share of `PLACES`, so that none can starve another.
 */
export type Lane =
  /** Payments or holds of ordinary accounts, in a batch or single. */
  | "batch"
  /** One payment or hold of a wallet with code, or of an account whose last payment failed in a batch. */
  | "alone"
  /** Escrow outcomes. */
  | "outcome"
  /** Anchors of the log and statements to ERC-8004. */
  | "statement";

export type Shares = Readonly<Record<Lane, number>>;

/** The shares of each account add up to `PLACES`. */
export const SHARES = {
  facilitator: { batch: 12, alone: 4, outcome: 0, statement: 0 },
  arbiter: { batch: 4, alone: 2, outcome: 6, statement: 4 },
} as const satisfies Record<string, Shares>;

/** How long a payment waits for a place, in milliseconds: two blocks of Base. */
export const PLACE_WITHIN_MS = 4_000;
/** How long to wait for the next block before trying again anyway. */
export const TRY_AGAIN_MS = 500;
/** How many payments of a process look for a place in one lane, and how many more may wait to do so. */
const LOOKING = 4;
const MOST_WAITING = 64;

export const noPlace = (lane: Lane): TurnedAway =>
  new TurnedAway("no place", `nothing was sent: every place for ${lane} transactions is taken`);

export const isNoPlace = (error: unknown): error is TurnedAway =>
  error instanceof TurnedAway && error.because === "no place";

/** The line of a process's single payments. A few look for a place at a time, and a limited number wait. */
export type Line = ReturnType<typeof createLine>;

export function createLine(lane: Lane, nextBlock: NextBlock) {
  const queue = new PQueue({ concurrency: LOOKING });
  /** Tries until there is a place. Rejects with `TurnedAway` after `PLACE_WITHIN_MS`, or if too many wait. */
  return async <T>(attempt: () => Promise<T>): Promise<T> => {
    if (queue.size >= MOST_WAITING) throw noPlace(lane);
    const until = performance.now() + PLACE_WITHIN_MS;
    return queue.add(async () => {
      for (;;)
        try {
          return await attempt();
        } catch (error) {
          if (!isNoPlace(error) || performance.now() >= until) throw error;
          await nextBlock(TRY_AGAIN_MS);
        }
    });
  };
}

/** How often the chain is read while a caller waits, in milliseconds. */
const LOOK_EVERY_MS = 100;

/** Waits for the chain's next block. Resolves when there is one, or after `withinMs`. */
export type NextBlock = (withinMs: number) => Promise<void>;

/** Watches the head for all callers, and only while one waits. */
export function watchBlocks(client: Pick<PublicClient, "getBlockNumber">): NextBlock {
  const waiting = new Set<() => void>();
  let head: bigint | null = null;
  let isWatching = false;

  const look = async () => {
    const number = await client.getBlockNumber({ cacheTime: 0 }).catch(() => null);
    if (number === null || number === head) return;
    head = number;
    for (const wake of waiting) wake();
  };
  const watch = async () => {
    isWatching = true;
    while (waiting.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      if (waiting.size > 0) await look();
    }
    isWatching = false;
  };
  return (withinMs) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, withinMs);
      waiting.add(wake);
      if (!isWatching) void watch();
    });
}

/**
 * Why a payment was not sent: every place for it is taken, failed payments have cost too much gas today, or the
 * account's remote signer did not sign.
 */
export type Because = "no place" | "gas lost" | "no signer";

/** A payment that was not sent. Nothing is stored that could be sent later. */
export class TurnedAway extends Error {
  readonly because: Because;

  constructor(because: Because, message: string) {
    super(message);
    this.because = because;
  }
}

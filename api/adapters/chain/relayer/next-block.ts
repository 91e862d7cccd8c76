import type { PublicClient } from "viem";

/** How often the chain is asked around the time at which a block is due, and how rarely otherwise, in milliseconds. */
const ASKED = { often: 20, rarely: 250 };
/** Asked often from this long before a block is due until this long after, in milliseconds. */
const DUE = { before: 40, after: 400 };
/** Blocks that come more often are not waited for one by one. */
const SHORTEST_GAP_MS = 100;

/** Waits for the chain's next block. */
export interface NextBlock {
  /** Resolves when there is one, or after `withinMs`. */
  (withinMs: number): Promise<void>;
}

/**
 * Watches the head for all who wait, and only while somebody waits. Blocks come at regular times: once one has been
 * seen, the chain is asked often around the time of the next one, and rarely before.
 * @param expectedMs the time between two blocks at most
 */
export function watchBlocks(client: Pick<PublicClient, "getBlockNumber">, expectedMs: number): NextBlock {
  const waiting = new Set<() => void>();
  let head: { readonly number: bigint; readonly at: number } | null = null;
  let gap = expectedMs;
  let due = 0;
  let isWatching = false;

  const pause = (): number => {
    const now = performance.now();
    if (now > due + DUE.after) due += Math.ceil((now - due) / gap) * gap;
    return Math.min(Math.max(due - DUE.before - now, ASKED.often), ASKED.rarely);
  };
  const look = async (paused: number) => {
    const number = await client.getBlockNumber({ cacheTime: 0 }).catch(() => null);
    if (number === null || number === head?.number) return;
    const at = performance.now();
    if (head !== null && number > head.number) {
      const seen = (at - head.at) / Number(number - head.number);
      gap = Math.min(Math.max(seen, SHORTEST_GAP_MS), expectedMs);
    }
    head = { number, at };
    // It may have come at any time since the last look.
    due = at + gap - (paused > ASKED.often ? paused : 0);
    for (const wake of waiting) wake();
  };
  const watch = async () => {
    isWatching = true;
    while (waiting.size > 0) {
      const paused = pause();
      await new Promise((resolve) => setTimeout(resolve, paused));
      if (waiting.size > 0) await look(paused);
    }
    isWatching = false;
  };
  return (withinMs) =>
    new Promise((resolve) => {
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

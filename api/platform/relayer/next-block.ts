import type { PublicClient } from "viem";

/** How often the chain is asked while somebody waits, in milliseconds. */
const LOOK_EVERY_MS = 100;

/** Waits for the chain's next block: resolves when there is one, or after `withinMs`. */
export type NextBlock = (withinMs: number) => Promise<void>;

/** Watches the head for all who wait, and only while somebody waits. */
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

import type { PublicClient } from "viem";

/** How often the chain is asked around the time at which a block is due, and how rarely otherwise, in milliseconds. */
const ASKED = { often: 20, rarely: 250 };
/** At least so many times between two blocks. */
const ASKED_A_GAP = 3;
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
 * seen to come, the chain is asked often around the times of the next ones, and rarely before.
 * @param expectedMs the time between two blocks at most
 */
export function watchBlocks(client: Pick<PublicClient, "getBlockNumber">, expectedMs: number): NextBlock {
  const waiting = new Set<() => void>();
  let head: bigint | null = null;
  /** The last block whose coming was seen, and not only afterwards that it had come. */
  let seen: { readonly number: bigint; readonly at: number } | null = null;
  let looked = Number.NEGATIVE_INFINITY;
  let gap = expectedMs;
  let due = 0;
  let isWatching = false;

  const pause = (): number => {
    const now = performance.now();
    if (now > due + Math.min(DUE.after, gap / 2)) due += Math.ceil((now - due) / gap) * gap;
    return Math.min(Math.max(due - DUE.before - now, ASKED.often), ASKED.rarely, gap / ASKED_A_GAP);
  };
  const note = (number: bigint, at: number, unseen: number) => {
    if (seen !== null && number > seen.number)
      gap = Math.min(Math.max((at - seen.at) / Number(number - seen.number), SHORTEST_GAP_MS), expectedMs);
    seen = { number, at };
    // It may have come at any time since the last look.
    due = at + gap - (unseen > 2 * ASKED.often ? unseen : 0);
  };
  const look = async () => {
    const number = await client.getBlockNumber({ cacheTime: 0 }).catch(() => null);
    if (number === null) return;
    const at = performance.now();
    const unseen = at - looked;
    looked = at;
    if (number === head) return;
    head = number;
    // When nobody has watched for long, blocks are due as they were before. A slow node's answers still count.
    if (unseen < Math.max(gap / 2, expectedMs / 4)) note(number, at, unseen);
    for (const wake of waiting) wake();
  };
  const watch = async () => {
    isWatching = true;
    while (waiting.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, pause()));
      if (waiting.size > 0) await look();
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

import type { PublicClient } from "viem";
import { createBlockTimes } from "./block-times.ts";

/** How often the chain is asked around the time at which a block is due, and how rarely otherwise, in milliseconds. */
const ASKED = { often: 20, rarely: 250 };
/** At least so many times between two blocks. */
const ASKED_A_GAP = 3;
/** Asked often from this long before a block is due until this long after, in milliseconds. */
const DUE = { before: 40, after: 400 };
/** Blocks that come more often are not waited for one by one. */
const SHORTEST_GAP_MS = 100;
/** What is to be in a block sets out so long before it is due: in milliseconds, and in shares of the time between two. */
const LAST_CALL = { ms: 150, share: 1 / 3 };

/** Waits for the chain's next block. */
export interface NextBlock {
  /** Resolves when there is one, or after `withinMs`. */
  (withinMs: number): Promise<void>;
  /**
   * In how many milliseconds a transaction should set out to be in the next block: zero or less when it is time,
   * infinity if nobody knows when that block comes.
   */
  lastCallInMs(): number;
}

/**
 * Watches the head for all who wait, and only while somebody waits. Blocks come at regular times: once one has been
 * seen to come, the chain is asked often around the times of the next ones, and rarely before.
 * @param expectedMs the time between two blocks at most
 */
export function watchBlocks(client: Pick<PublicClient, "getBlockNumber">, expectedMs: number): NextBlock {
  const waiting = new Set<() => void>();
  const times = createBlockTimes();
  let head: bigint | null = null;
  /** The last block whose coming was seen, and not only afterwards that it had come. */
  let seen: { readonly number: bigint; readonly at: number } | null = null;
  let looked = Number.NEGATIVE_INFINITY;
  let asked = Number.NEGATIVE_INFINITY;
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
    const asking = performance.now();
    const number = await client.getBlockNumber({ cacheTime: 0 }).catch(() => null);
    if (number === null) return;
    const at = performance.now();
    const unseen = at - looked;
    const since = asked;
    looked = at;
    asked = asking;
    if (number === head) return;
    if (head !== null && number > head && at - since < expectedMs / 4) times.saw(Number(number), since, at);
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
  const lastCallInMs = () => {
    const now = performance.now();
    const block = times.next(now);
    if (block === null) return Number.POSITIVE_INFINITY;
    return block.at - Math.min(LAST_CALL.ms, block.gapMs * LAST_CALL.share) - now;
  };
  const next = (withinMs: number) =>
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
  return Object.assign(next, { lastCallInMs });
}

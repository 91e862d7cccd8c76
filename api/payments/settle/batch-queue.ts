import type { NextBlock } from "../../platform/relayer/next-block.ts";
import { isNoPlace, PLACE_WITHIN_MS, TRY_AGAIN_MS } from "../../platform/relayer/places.ts";

/** When payments set out together. */
export interface BatchPolicy {
  /** The most payments in one transaction; 1 turns batches off. */
  readonly most: number;
  /** How many milliseconds the first waits while another batch is not mined yet. */
  readonly waitMs: number;
}

interface Waiting<Item> {
  readonly item: Item;
  /** In milliseconds of the process. */
  readonly since: number;
  readonly done: (problem: Error | null) => void;
}

/**
 * Collects items into batches. A batch is sent immediately, with all items from the same turn of the event loop, if no other is
 * in progress. Otherwise it is sent when that one ends, when it has `most` items, or when its first item has waited `waitMs`.
 * Items that get no place return to the queue and are sent with newer ones after the next block, for `PLACE_WITHIN_MS` at most.
 * @param work returns one error or null for each item, in order
 */
export function createBatchQueue<Item>(
  work: (items: readonly Item[]) => Promise<readonly (Error | null)[]>,
  { most, waitMs, nextBlock }: BatchPolicy & { readonly nextBlock: NextBlock },
): (item: Item) => Promise<Error | null> {
  const queue: Waiting<Item>[] = [];
  let underWay = 0;
  let isTurn = false;
  let isHeld = false;
  let timer: NodeJS.Timeout | undefined;

  const waitedMs = () => performance.now() - (queue[0]?.since ?? 0);
  const mayGo = () => queue.length > 0 && (underWay === 0 || queue.length >= most || waitedMs() >= waitMs);
  const depart = () => {
    isTurn = false;
    clearTimeout(timer);
    if (isHeld) return;
    while (mayGo()) void go(queue.splice(0, most));
    if (queue.length > 0) timer = setTimeout(depart, Math.max(1, waitMs - waitedMs()));
  };
  const go = async (group: readonly Waiting<Item>[]) => {
    underWay++;
    const problems = await work(group.map(({ item }) => item)).catch((error: unknown) =>
      group.map(() => (error instanceof Error ? error : new Error(String(error)))),
    );
    underWay--;
    const back = group.filter(({ since, done }, at) => {
      const problem = problems[at] ?? null;
      if (isNoPlace(problem) && performance.now() - since < PLACE_WITHIN_MS) return true;
      done(problem);
      return false;
    });
    queue.unshift(...back);
    if (back.length > 0) hold();
    depart();
  };
  const hold = () => {
    if (isHeld) return;
    isHeld = true;
    void nextBlock(TRY_AGAIN_MS).then(() => {
      isHeld = false;
      depart();
    });
  };
  return (item) =>
    new Promise((done) => {
      queue.push({ item, since: performance.now(), done });
      if (!isTurn) setImmediate(depart);
      isTurn = true;
    });
}

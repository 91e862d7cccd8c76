import type { Asker } from "../http/client.ts";
import { createFairQueue } from "./fair-queue.ts";

interface Waiting<In, Out> {
  readonly item: In;
  readonly done: (outcome: Out) => void;
  readonly fail: (error: unknown) => void;
}

export interface Pace {
  /** The most that one call answers. */
  readonly most: number;
  /** At least this long from one call to the next, in milliseconds. */
  readonly everyMs: number;
  /** No more than this many wait that are not paid for: of more, those who ask for most are refused at once. */
  readonly mostWaiting: number;
}

/** Too many wait to be answered. */
class Crowded extends Error {}

/**
 * Answers many with one call, and makes few calls however many ask. The first of a quiet time goes at once, with what came
 * in the same turn of the event loop. Of many, askers take turns.
 * @param work returns an outcome for each item, in their order
 */
export function paced<In, Out>(
  work: (items: readonly In[]) => Promise<readonly Out[]>,
  { most, everyMs, mostWaiting }: Pace,
): (item: In, asker: Asker) => Promise<Out> {
  const queue = createFairQueue<Waiting<In, Out>>(mostWaiting);
  let lastMs = Number.NEGATIVE_INFINITY;
  let isDue = false;

  const schedule = () => {
    if (isDue || queue.size() === 0) return;
    isDue = true;
    const inMs = lastMs + everyMs - performance.now();
    if (inMs > 0) setTimeout(depart, inMs);
    else setImmediate(depart);
  };
  const depart = () => {
    isDue = false;
    lastMs = performance.now();
    const group = queue.take(most);
    const each = (end: (one: Waiting<In, Out>, place: number) => void) => group.forEach(end);
    work(group.map(({ item }) => item)).then(
      (outcomes) => each(({ done }, place) => done(outcomes[place] as Out)),
      (error: unknown) => each(({ fail }) => fail(error)),
    );
    schedule();
  };
  return (item, asker) =>
    new Promise<Out>((done, fail) => {
      queue.put({ item, done, fail }, asker)?.fail(new Crowded(`${mostWaiting} are waiting already`));
      schedule();
    });
}

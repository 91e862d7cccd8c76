import { LRUCache } from "lru-cache";

/** When to send the waiting items. */
export interface BatchLimits {
  /** The most items in one batch. */
  readonly most: number;
  /** The most batches under way. */
  readonly underWay: number;
  /** How long the first item waits for a batch under way, in milliseconds. */
  readonly waitMs: number;
}

interface Waiting<In, Out> {
  readonly item: In;
  readonly since: number;
  readonly done: (outcome: Out) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Collects the items that arrive while other batches are under way. If none is, the batch is sent immediately, with all
 * items from the same turn of the event loop. Otherwise it is sent when one comes back, when it is full, or when its
 * first item has waited long enough.
 * @param work returns an outcome for each item, in their order
 */
export function createBatcher<In, Out>(
  work: (items: readonly In[]) => Promise<readonly Out[]>,
  { most, underWay, waitMs }: BatchLimits,
): (item: In) => Promise<Out> {
  const queue: Waiting<In, Out>[] = [];
  let groups = 0;
  let timer: NodeJS.Timeout | null = null;
  let isTurn = false;

  const depart = () => {
    isTurn = false;
    while (queue.length > 0 && groups < underWay && mayGo()) go(queue.splice(0, most));
    if (timer !== null) clearTimeout(timer);
    timer = queue.length > 0 && groups < underWay ? setTimeout(wake, Math.max(0, waitMs - waited())) : null;
  };
  const mayGo = () => groups === 0 || queue.length >= most || waited() >= waitMs;
  const waited = () => performance.now() - (queue[0]?.since ?? 0);
  const wake = () => {
    timer = null;
    depart();
  };
  const go = (group: readonly Waiting<In, Out>[]) => {
    groups++;
    const each = (end: (one: Waiting<In, Out>, place: number) => void) => group.forEach(end);
    work(group.map(({ item }) => item))
      .then(
        (outcomes) => each(({ done }, place) => done(outcomes[place] as Out)),
        (error: unknown) => each(({ fail }) => fail(error)),
      )
      .finally(() => {
        groups--;
        depart();
      });
  };
  return (item) =>
    new Promise((done, fail) => {
      queue.push({ item, since: performance.now(), done, fail });
      if (!isTurn) setImmediate(depart);
      isTurn = true;
    });
}

const REMEMBERED = 1_000;

/** Shares the answer to a question that is being asked or was just asked. Failures are not cached. */
export interface Recent<Value> {
  (question: string, ask: () => Promise<Value>): Promise<Value>;
  /** Returns the cached answer without asking; null if there is none. */
  known(question: string): Promise<Value> | null;
  /** Caches an answer from another source. */
  saw(question: string, answer: Value): void;
  /** Drops the cached answer, so that the next call asks again. */
  forget(question: string): void;
}

export function createRecent<Value>(keptMs: number): Recent<Value> {
  const asked = new LRUCache<string, Promise<Value>>({ max: REMEMBERED, ttl: keptMs, ttlResolution: 0 });
  const known = (question: string) => asked.get(question) ?? null;
  const recent = (question: string, ask: () => Promise<Value>): Promise<Value> => {
    const before = known(question);
    if (before !== null) return before;
    const answer = ask();
    asked.set(question, answer);
    answer.catch(() => {
      if (asked.peek(question) === answer) asked.delete(question);
    });
    return answer;
  };
  const saw = (question: string, answer: Value) => void asked.set(question, Promise.resolve(answer));
  const forget = (question: string) => void asked.delete(question);
  return Object.assign(recent, { known, saw, forget });
}

const KEYS_REMEMBERED = 10_000;

/** Remembers names for a while, up to a limit, beyond which the oldest are dropped. */
export function createShortMemory(forMs: number) {
  const names = new LRUCache<string, true>({ max: KEYS_REMEMBERED, ttl: forMs });
  return {
    remember: (name: string): void => void names.set(name, true),
    has: (name: string): boolean => names.has(name),
  };
}

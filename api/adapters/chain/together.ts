/** When what waits sets out. */
export interface Departures {
  /** The most that go together. */
  readonly most: number;
  /** How many groups may be under way. */
  readonly underWay: number;
  /** How long the first waits while another group is under way, in milliseconds. */
  readonly waitMs: number;
  /** How many are about to arrive, where that is known, and how long fewer wait for them with nothing under way. */
  readonly coming?: { readonly count: () => number; readonly waitMs: number };
  /** In how many milliseconds those that wait should set out although another group is under way. */
  readonly lastCallInMs?: () => number;
}

interface Waiting<In, Out> {
  readonly item: In;
  readonly since: number;
  readonly done: (outcome: Out) => void;
  readonly fail: (error: unknown) => void;
}

const never = () => Number.POSITIVE_INFINITY;
/** Of the groups that may be under way: not taken before a last call that is known to come. */
const KEPT_FOR_LAST_CALL = 1 / 3;

/**
 * Collects what arrives while others are under way. With nothing under way it goes at once, with what arrived in the same
 * turn of the event loop, unless more are about to arrive; else when that is back, when it is full, when the first has
 * waited long enough, or at the last call. From then on it goes as if nothing were under way: places are kept for that.
 * @param work returns an outcome for each item, in their order
 */
export function together<In, Out>(
  work: (items: readonly In[]) => Promise<readonly Out[]>,
  { most, underWay, waitMs, coming, lastCallInMs = never }: Departures,
): (item: In) => Promise<Out> {
  const queue: Waiting<In, Out>[] = [];
  let groups = 0;
  let timer: NodeJS.Timeout | null = null;
  let isTurn = false;

  const depart = () => {
    isTurn = false;
    while (queue.length > 0 && groups < places() && mayGo()) go(queue.splice(0, most));
    if (timer !== null) clearTimeout(timer);
    timer = queue.length > 0 && groups < underWay ? setTimeout(wake, Math.max(0, leavesInMs())) : null;
  };
  const places = () => (isCallToCome() ? underWay - Math.floor(underWay * KEPT_FOR_LAST_CALL) : underWay);
  const isCallToCome = () => {
    const call = callInMs();
    return call > 0 && Number.isFinite(call);
  };
  const mayGo = () => queue.length >= most || waited() >= patience();
  const callInMs = () => (groups > 0 ? lastCallInMs() : 0);
  const patience = () => {
    if (callInMs() > 0) return waitMs;
    return coming !== undefined && coming.count() > queue.length ? coming.waitMs : 0;
  };
  const leavesInMs = () => {
    const call = callInMs();
    if (groups >= places()) return call;
    return call > 0 ? Math.min(call, waitMs - waited()) : patience() - waited();
  };
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

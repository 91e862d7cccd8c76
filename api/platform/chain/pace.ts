import { type Asker, networkOf } from "../http/request.ts";
import { isTransport } from "./rpc.ts";

/** A queue that shares its items fairly among the clients. */
export interface FairQueue<Item> {
  readonly size: () => number;
  /** Adds an item. Returns the item that is dropped for it, possibly the same one; null while there is room. */
  put(item: Item, asker: Asker): Item | null;
  /** Removes and returns the next items, up to `most`. */
  take(most: number): readonly Item[];
}

/** In a full round, one slot in `LEFT_TO_OTHERS` is reserved for unpaid requests. */
const LEFT_TO_OTHERS = 5;

type Clients<Item> = Map<string, Item[]>;

interface Largest<Item> {
  readonly key: string;
  readonly value: Item;
}

/**
 * Creates a queue in which networks take turns, and within its turns so do the clients of a network. A client, or an
 * owner of many addresses in one network, thus delays only itself. Unpaid requests have `most` places. When they are
 * taken, the newest item of the largest client of the largest network is dropped. Paid requests are never refused, and
 * come first.
 */
export function createFairQueue<Item>(most: number): FairQueue<Item> {
  const paid: Item[] = [];
  const networks = new Map<string, Clients<Item>>();
  let free = 0;

  const waitingOf = (clients: Clients<Item>): number => {
    let waiting = 0;
    for (const items of clients.values()) waiting += items.length;
    return waiting;
  };
  const giveWay = (client: string): Item | null => {
    const own = networkOf(client);
    const network = largest(networks, own, waitingOf);
    const crowd = largest(network.value, network.key === own ? client : undefined, (items) => items.length);
    const last = crowd.value.pop() ?? null;
    if (crowd.value.length === 0) network.value.delete(crowd.key);
    if (network.value.size === 0) networks.delete(network.key);
    free--;
    return last;
  };
  const next = (): Item | undefined => {
    const [network] = networks;
    const [client] = network?.[1] ?? [];
    if (network === undefined || client === undefined) return undefined;
    const [[name, clients], [key, items]] = [network, client];
    const item = items.shift();
    free--;
    clients.delete(key);
    if (items.length > 0) clients.set(key, items);
    networks.delete(name);
    if (clients.size > 0) networks.set(name, clients);
    return item;
  };
  return {
    size: () => paid.length + free,
    put(item, asker) {
      if (asker === null) {
        paid.push(item);
        return null;
      }
      const name = networkOf(asker);
      const clients = networks.get(name) ?? new Map<string, Item[]>();
      const items = clients.get(asker) ?? [];
      items.push(item);
      clients.set(asker, items);
      networks.set(name, clients);
      free++;
      return free > most ? giveWay(asker) : null;
    },
    take(room) {
      const kept = Math.min(free, Math.ceil(room / LEFT_TO_OTHERS));
      const taken = paid.splice(0, room - kept);
      while (taken.length < room && free > 0) {
        const item = next();
        if (item !== undefined) taken.push(item);
      }
      return taken;
    },
  };
}

/** Returns the largest; among equals, the one that came before the client that is asking. */
function largest<Value>(
  all: ReadonlyMap<string, Value>,
  first: string | undefined,
  sizeOf: (value: Value) => number,
): Largest<Value> {
  let found: (Largest<Value> & { readonly size: number }) | null = null;
  const own = first === undefined ? undefined : all.get(first);
  if (first !== undefined && own !== undefined) found = { key: first, value: own, size: sizeOf(own) };
  for (const [key, value] of all) {
    const size = sizeOf(value);
    if (found === null || size > found.size) found = { key, value, size };
  }
  if (found === null) throw new Error("nothing waits");
  return found;
}

interface Waiting<In, Out> {
  readonly item: In;
  readonly done: (outcome: Out) => void;
  readonly fail: (error: unknown) => void;
}

export interface Pace {
  /** The most requests answered by one call. */
  readonly most: number;
  /** The minimum time between two calls, in milliseconds. */
  readonly everyMs: number;
  /** The most unpaid requests that may wait. Beyond that, the clients with the most are refused immediately. */
  readonly mostWaiting: number;
}

/** Too many requests are waiting. */
class Crowded extends Error {}

/**
 * Answers many requests with one call, and makes few calls however many there are. After a quiet time, the first is
 * sent immediately, together with those from the same turn of the event loop. Clients take turns.
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

/** The number of calls that one look-up may still make. Repeats count. */
export interface Allowance {
  readonly left: () => number;
  readonly spend: () => void;
}

export function createAllowance(calls: number): Allowance {
  let left = calls;
  return {
    left: () => left,
    spend: () => {
      if (left <= 0) throw new Error("a look-up may not make another call");
      left--;
    },
  };
}

/** Makes a call, and repeats it once if the node failed to answer and the allowance covers that. */
export async function spending<T>(allowance: Allowance, call: () => Promise<T>): Promise<T> {
  allowance.spend();
  try {
    return await call();
  } catch (error) {
    if (!isTransport(error) || allowance.left() === 0) throw error;
    allowance.spend();
    return call();
  }
}

import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import type { Ledger } from "../../packages/seller-check/src/exam/ledger.ts";
import { ExaminersFault } from "../../packages/seller-check/src/exam/ledger.ts";

export interface NetworkHealthParts {
  /**
   * Returns the newest block's number from a node, or null if the node responds without one. Rejects if it does not
   * respond.
   */
  readonly block: () => Promise<bigint | null>;
  /**
   * Called after a request failed. Returns false if it failed because names on the public Internet cannot be resolved
   * now.
   */
  readonly resolves: (failure: unknown) => Promise<boolean>;
  readonly sleep: (ms: number) => Promise<void>;
  /** Repeats the work at an interval in milliseconds until the returned function is called. */
  readonly every: (ms: number, work: () => void) => () => void;
  /** Returns milliseconds from a monotonic clock. */
  readonly elapsed: () => number;
}

/** Distinguishes a seller's silence from a fault in our network. */
export interface NetworkHealth {
  /**
   * Wraps a transport. A request without an answer is investigated, and after a fault on our side nothing more is sent.
   */
  readonly over: (transport: Transport) => Transport;
  /** @throws ExaminersFault unless our side worked whenever a seller did not answer */
  readonly requireWorked: () => Promise<void>;
}

/** Base produces a block every two seconds. If none arrives for this long, our network is down. */
const STANDSTILL_MS = 10_000;
const LOOK_EVERY_MS = 2_000;
const LOOK_AGAIN_MS = 500;

/**
 * A FAIL for silence requires evidence that our side worked at that time: while a request waits, and once more after it
 * failed, the chain can be read, its head advances, and names resolve. Even our own node advances only with the
 * network, and no seller can halt the chain.
 */
export function watchNetworkHealth(parts: NetworkHealthParts): NetworkHealth {
  const looks: Promise<void>[] = [];
  let fault: ExaminersFault | null = null;
  const block = oneAtATime(parts.block);
  const lookInto = async (watch: Watch, failure: unknown): Promise<void> => {
    const [isAdvancing, resolves] = await Promise.all([
      watch.isAdvancing(),
      parts.resolves(failure).catch(() => false),
    ]);
    if (isAdvancing && resolves) return;
    const what = isAdvancing ? "names could not be resolved" : "the chain stalled or could not be read";
    fault = new ExaminersFault(`Our own network did not work while the seller gave no answer: ${what}.`);
  };
  const watched = async <T>(send: () => Promise<T>): Promise<T> => {
    if (fault !== null) throw fault;
    const watch = beginWatch({ ...parts, block });
    try {
      return await send();
    } catch (error) {
      looks.push(lookInto(watch, error));
      throw error;
    } finally {
      watch.end();
    }
  };
  return {
    over: ({ send, sendAndHangUp, ...others }) => ({
      ...others,
      send: (request) => watched(() => send(request)),
      sendAndHangUp: (request) => watched(() => sendAndHangUp(request)),
    }),
    async requireWorked() {
      await Promise.all(looks);
      if (fault !== null) throw fault;
    },
  };
}

interface Watch {
  /** Called after the request failed. Returns whether the head kept advancing and does so once more. */
  readonly isAdvancing: () => Promise<boolean>;
  /** Stops the periodic reads. */
  readonly end: () => void;
}

/** Reads the head while a request waits, which costs nothing if the answer comes soon. */
function beginWatch({ block, sleep, every, elapsed }: Omit<NetworkHealthParts, "resolves">): Watch {
  let head: bigint | null = null;
  let movedAt = elapsed();
  let isBroken = false;
  const look = async () => {
    const seen = await block().catch(() => "no answer" as const);
    const at = elapsed();
    if (seen === "no answer" || at - movedAt > STANDSTILL_MS) isBroken = true;
    if (typeof seen !== "bigint" || (head !== null && seen <= head)) return;
    if (head !== null) movedAt = at;
    head = seen;
  };
  const end = every(LOOK_EVERY_MS, look);
  return {
    async isAdvancing() {
      const failedAt = elapsed();
      for (;;) {
        await look();
        if (isBroken || movedAt > failedAt) return !isBroken;
        await sleep(LOOK_AGAIN_MS);
      }
    },
    end,
  };
}

/** Callers share a read that is in progress. */
function oneAtATime<T>(look: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null;
  return () => {
    underWay ??= look().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

/**
 * If our clock were further ahead than this, our signatures would not be valid yet, and a correct seller would refuse
 * them.
 */
const MOST_AHEAD_MS = 300_000;

/**
 * Returns the clock that a run uses, in milliseconds since 1970: ours, or the chain's if ours is behind. Blocks are
 * compared with it, and a clock that is behind would mistake old ones for new.
 * @throws ExaminersFault if our clock is far ahead, or the chain has stalled
 */
export async function examClock({ now }: Pick<Ledger, "now">, own: () => Date): Promise<() => number> {
  const chain = await ours(now());
  const behind = chain * 1000 - own().getTime();
  if (behind < -MOST_AHEAD_MS)
    throw new ExaminersFault(`The newest block is ${Math.round(-behind / 1000)} seconds behind our clock.`);
  return () => own().getTime() + Math.max(0, behind);
}

/** @throws ExaminersFault if the chain cannot be read */
export const ours = <T>(reading: Promise<T>): Promise<T> =>
  reading.catch((cause: unknown) => {
    throw new ExaminersFault("The chain cannot be read.", { cause });
  });

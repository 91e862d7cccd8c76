import { ExaminersFault } from "../../packages/seller-check/src/exam/examiners-fault.ts";
import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import type { Ledger } from "../../packages/seller-check/src/exam/ledger.ts";

export interface NetworkHealthParts {
  /** The newest block's number, as a node shows it now; null where it answers without one. Rejects if it does not answer. */
  readonly block: () => Promise<bigint | null>;
  /** After a request failed: unless names of the public Internet cannot be resolved now, where that was why. */
  readonly resolves: (failure: unknown) => Promise<boolean>;
  readonly sleep: (ms: number) => Promise<void>;
  /** Repeats the work at an interval in milliseconds until the returned function is called. */
  readonly every: (ms: number, work: () => void) => () => void;
  /** Milliseconds of a clock that is never set. */
  readonly elapsed: () => number;
}

/** What tells a seller's silence from our own. */
export interface NetworkHealth {
  /** The same requests. One that gets no answer is looked into, and nothing is sent after our side was found broken. */
  readonly over: (transport: Transport) => Transport;
  /** @throws ExaminersFault unless our side worked whenever a seller gave no answer */
  readonly requireWorked: () => Promise<void>;
}

/** Base makes a block every two seconds: one that does not come for so long says that nothing comes in. */
const STANDSTILL_MS = 10_000;
const LOOK_EVERY_MS = 2_000;
const LOOK_AGAIN_MS = 500;

/**
 * A FAIL for silence rests on evidence that our side worked at that time: while a request waits, and once more after it
 * failed, each look at the chain is answered, its head goes on, and names resolve. A node of our own goes on only with
 * the network, and no seller can hold the chain up.
 */
export function watchNetworkHealth(parts: NetworkHealthParts): NetworkHealth {
  const looks: Promise<void>[] = [];
  let fault: ExaminersFault | null = null;
  const block = oneAtATime(parts.block);
  const lookInto = async (watch: Watch, failure: unknown): Promise<void> => {
    const [goesOn, resolves] = await Promise.all([watch.goesOn(), parts.resolves(failure).catch(() => false)]);
    if (goesOn && resolves) return;
    const what = goesOn ? "names could not be resolved" : "the chain stood still or could not be read";
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
  /** After the request failed: whether the head went on all the time, and does once more. */
  readonly goesOn: () => Promise<boolean>;
  /** No more looks by itself. */
  readonly end: () => void;
}

/** Looks at the head while a request waits, which costs nothing where the answer comes soon. */
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
    async goesOn() {
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

/** Whoever asks while a look is under way gets its answer. */
function oneAtATime<T>(look: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null;
  return () => {
    underWay ??= look().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

/** With a clock this far ahead, what is signed would not be valid yet, and a correct seller would refuse it. */
const MOST_AHEAD_MS = 300_000;

/**
 * The clock by which a run judges, in milliseconds since 1970: ours, or the chain's if ours is behind. Blocks are compared
 * with it, and a clock that is behind would take old ones for new.
 * @throws ExaminersFault if our clock is far ahead, or the chain stands still
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

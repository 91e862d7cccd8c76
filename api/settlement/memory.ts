import type { Hex } from "../kernel/wallet.ts";
import type { HashedBlock, NonceEnd } from "./authorization-reader.ts";
import type { Question } from "./question.ts";

/** How a nonce ended, and whether that is final. */
export interface Ended {
  readonly end: NonceEnd;
  readonly isFinal: boolean;
}

type Name = Pick<Question, "network" | "from" | "nonce">;
type Windowed = Name & Pick<Question, "validBefore">;

/** What has been found: what is final stays for as long as there is room, the rest is believed for a minute. */
export interface Memory {
  readonly ended: (name: Name) => Ended | null;
  /** The transaction that was found last, however long ago. */
  readonly lastSeen: (name: Name) => Hex | null;
  readonly put: (name: Name, ended: Ended) => void;
  readonly forget: (name: Name) => void;
  /** A final block, not before `validBefore`, before which the nonce was not used. */
  readonly unusedBefore: (window: Windowed) => HashedBlock | null;
  readonly putUnused: (window: Windowed, block: HashedBlock) => void;
}

/** Of each kind: about 10 MB. */
const MOST_KEPT = 20_000;
/** A reorganization may move a transaction to another block, or replace it. */
const BELIEVED_MS = 60_000;

/** @param now in milliseconds */
export function createMemory(now: () => number): Memory {
  const ends = createKept<Name, Ended & { readonly since: number }>(nameKey);
  const unused = createKept<Windowed, HashedBlock>((window) => `${nameKey(window)} ${window.validBefore}`);
  const isBelieved = (found: Ended & { readonly since: number }) => found.isFinal || now() - found.since <= BELIEVED_MS;
  return {
    ended(name) {
      const found = ends.get(name);
      return found !== undefined && isBelieved(found) ? { end: found.end, isFinal: found.isFinal } : null;
    },
    lastSeen: (name) => ends.get(name)?.end.transaction ?? null,
    put(name, ended) {
      const before = ends.get(name);
      // What was answered from memory has not been seen again.
      const isOld = before !== undefined && isBelieved(before) && before.end === ended.end;
      ends.put(name, { ...ended, since: isOld ? before.since : now() });
    },
    forget: ends.forget,
    unusedBefore: (window) => unused.get(window) ?? null,
    putUnused: unused.put,
  };
}

const nameKey = ({ network, from, nonce }: Name): string => `${network} ${from} ${nonce}`;

/** Of very many, the latest. */
function createKept<Key, Value>(keyOf: (key: Key) => string) {
  const kept = new Map<string, Value>();
  return {
    get: (key: Key): Value | undefined => kept.get(keyOf(key)),
    put(key: Key, value: Value): void {
      kept.delete(keyOf(key));
      kept.set(keyOf(key), value);
      const [oldest] = kept.keys();
      if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
    },
    forget: (key: Key): void => void kept.delete(keyOf(key)),
  };
}

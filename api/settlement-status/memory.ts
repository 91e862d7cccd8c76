import { LRUCache } from "lru-cache";
import type { Hex } from "../platform/wallet.ts";
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
const KEPT = { maxSize: 20_000, sizeCalculation: () => 1 };
/** A reorganization may move a transaction to another block, or replace it. */
const BELIEVED_MS = 60_000;

/** @param now milliseconds since an arbitrary moment */
export function createMemory(now: () => number): Memory {
  const ends = new LRUCache<string, Ended & { readonly since: number }>(KEPT);
  const unused = new LRUCache<string, HashedBlock>(KEPT);
  const isBelieved = (found: Ended & { readonly since: number }) => found.isFinal || now() - found.since <= BELIEVED_MS;
  return {
    ended(name) {
      const found = ends.get(nameKey(name));
      return found !== undefined && isBelieved(found) ? { end: found.end, isFinal: found.isFinal } : null;
    },
    lastSeen: (name) => ends.get(nameKey(name))?.end.transaction ?? null,
    put(name, ended) {
      const before = ends.get(nameKey(name));
      // What was answered from memory has not been seen again.
      const isOld = before !== undefined && isBelieved(before) && before.end === ended.end;
      ends.set(nameKey(name), { ...ended, since: isOld ? before.since : now() });
    },
    forget: (name) => void ends.delete(nameKey(name)),
    unusedBefore: (window) => unused.get(windowKey(window)) ?? null,
    putUnused: (window, block) => void unused.set(windowKey(window), block),
  };
}

const nameKey = ({ network, from, nonce }: Name): string => `${network} ${from} ${nonce}`;

const windowKey = (window: Windowed): string => `${nameKey(window)} ${window.validBefore}`;

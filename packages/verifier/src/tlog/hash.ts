import { sha256 as portable } from "@noble/hashes/sha2.js";

/** Bytes in a hash. */
export const HASH_SIZE = 32;

/** Node's own SHA-256 takes a fifth of the time for an entry of 2 KiB; a browser has none that answers at once. */
const native = globalThis.process?.getBuiltinModule?.("node:crypto")?.hash;

/** Writes the SHA-256 of some bytes to a place of `target`. */
const hashInto: (bytes: Uint8Array, target: Uint8Array, at: number) => void =
  native === undefined
    ? (bytes, target, at) => target.set(portable(bytes), at)
    : (bytes, target, at) => {
        // A text costs a third of a Buffer, which makes most of the time of a short hash.
        const text = native("sha256", bytes, "binary");
        for (let place = 0; place < HASH_SIZE; place++) target[at + place] = text.charCodeAt(place);
      };

export function sha256(bytes: Uint8Array): Uint8Array {
  const hash = new Uint8Array(HASH_SIZE);
  hashInto(bytes, hash, 0);
  return hash;
}

/** The root of a tree without entries: SHA-256 of nothing (RFC 6962, section 2.1). */
export const EMPTY_ROOT: Uint8Array = sha256(new Uint8Array());

/** The hash of an entry: SHA-256 of 0x00 and its bytes. */
export function leafHash(entry: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + entry.length);
  bytes.set(entry, 1);
  return sha256(bytes);
}

/** 0x01 and two hashes: what is hashed for a node. One for all, because each new one would be memory outside the heap. */
const NODE = new Uint8Array(1 + 2 * HASH_SIZE).fill(1, 0, 1);

/** The hash of two neighbors: SHA-256 of 0x01 and both hashes. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  // What is shorter would be hashed with the end of the node before.
  if (left.length !== HASH_SIZE || right.length !== HASH_SIZE) throw new RangeError("a hash has another length");
  NODE.set(left, 1);
  NODE.set(right, 1 + HASH_SIZE);
  return sha256(NODE);
}

/** The root of a complete tree over hashes that stand one after the other; their number is a power of two. */
export function completeRoot(hashes: Uint8Array): Uint8Array {
  if (hashes.length <= HASH_SIZE) return hashes;
  // A Buffer's own slice would be the tile itself, which is written over here.
  const row = new Uint8Array(hashes);
  // Each row takes the place of the one below it, whose hashes have been read by then.
  for (let width = row.length; width > HASH_SIZE; width /= 2)
    for (let at = 0; at < width; at += 2 * HASH_SIZE) {
      for (let place = 0; place < 2 * HASH_SIZE; place++) NODE[1 + place] = row[at + place] as number;
      hashInto(NODE, row, at / 2);
    }
  return row.slice(0, HASH_SIZE);
}

export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

import { sha256 as portable } from "@noble/hashes/sha2.js";
import { concatBytes } from "../encodings.ts";

/** The size of a hash in bytes. */
export const HASH_SIZE = 32;

/** Node's SHA-256 takes a fifth of the time for an entry of 2 KiB. Browsers have no synchronous one. */
const native = globalThis.process?.getBuiltinModule?.("node:crypto")?.hash;

export function sha256(bytes: Uint8Array): Uint8Array {
  if (native === undefined) return portable(bytes);
  // A string costs a third of a Buffer, which dominates the time of a short hash.
  const text = native("sha256", bytes, "binary");
  const hash = new Uint8Array(HASH_SIZE);
  for (let at = 0; at < HASH_SIZE; at++) hash[at] = text.charCodeAt(at);
  return hash;
}

/** The root of an empty tree: SHA-256 of the empty string (RFC 6962, section 2.1). */
export const EMPTY_ROOT: Uint8Array = sha256(new Uint8Array());

/** Returns the hash of an entry: SHA-256 of 0x00 and its bytes. */
export const leafHash = (entry: Uint8Array): Uint8Array => sha256(concatBytes(Uint8Array.of(0), entry));

/** 0x01 and two hashes. It is shared, because an array of 65 bytes is slow to allocate. */
const NODE = new Uint8Array(1 + 2 * HASH_SIZE).fill(1, 0, 1);

/** Returns the hash of two neighbors: SHA-256 of 0x01 and both hashes. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (left.length !== HASH_SIZE || right.length !== HASH_SIZE) throw new RangeError("a hash has the wrong length");
  NODE.set(left, 1);
  NODE.set(right, 1 + HASH_SIZE);
  return sha256(NODE);
}

/** Returns the root of a complete tree over consecutive hashes; their number is a power of two. */
export function completeRoot(hashes: Uint8Array): Uint8Array {
  if (hashes.length <= HASH_SIZE) return hashes;
  const middle = hashes.length / 2;
  return nodeHash(completeRoot(hashes.subarray(0, middle)), completeRoot(hashes.subarray(middle)));
}

export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

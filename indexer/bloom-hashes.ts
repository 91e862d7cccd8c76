import { keccak256 as hashOf } from "../api/kernel/keccak.ts";

type Hex = `0x${string}`;

// What Ponder's `sync-realtime/bloom.js` takes from viem, for the thousands of questions that it asks of each block's filter.

/** Contracts and events come again in each block; who pays whom does not. */
const MOST_REMEMBERED = 10_000;
const HASH_DIGITS = 64;

const hashes = new Map<Hex, Hex>();
let filter: { readonly hex: string; readonly bytes: Uint8Array } = { hex: "", bytes: new Uint8Array() };

export function keccak256(input: Hex): Hex {
  const known = hashes.get(input);
  if (known !== undefined) return known;
  if (hashes.size >= MOST_REMEMBERED) hashes.clear();
  const hash = hashOf(input);
  hashes.set(input, hash);
  return hash;
}

/** The bytes of a hash, or of a block's filter, of which much is asked in a row. */
export function hexToBytes(hex: Hex): Uint8Array {
  if (hex === filter.hex) return filter.bytes;
  const bytes = Buffer.from(hex.slice(2), "hex");
  if (hex.length > HASH_DIGITS + 2) filter = { hex, bytes };
  return bytes;
}

export const hexToNumber = (hex: Hex): number => Number(hex);

import { Refusal } from "../refusal.ts";
import { completeRoot, EMPTY_ROOT, HASH_SIZE, nodeHash, sameBytes } from "./hash.ts";
import { type ReadTiles, TILE_WIDTH, type TileId, tilePath, tileWidth } from "./tile.ts";

/** The entries from `from` up to `to`, exclusive. */
interface EntryRange {
  readonly from: number;
  readonly to: number;
}

const TILE_HEIGHT = 8;

/** Returns the largest power of two smaller than `n`, which must be at least 2. */
function splitPoint(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

/** Returns the perfect subtrees of a range in RFC 6962's recursion, from the left, largest first. */
function perfectSubtrees({ from, to }: EntryRange): readonly EntryRange[] {
  const found: EntryRange[] = [];
  for (let at = from; at < to; ) {
    let span = 1;
    while (span * 2 <= to - at) span *= 2;
    found.push({ from: at, to: at + span });
    at += span;
  }
  return found;
}

/** The position of a perfect subtree: `count` hashes of a tile, which produce its root. */
interface SubtreePosition {
  readonly tile: TileId;
  readonly first: number;
  readonly count: number;
}

function placeOf({ from, to }: EntryRange, size: number): SubtreePosition {
  let height = 0;
  for (let span = to - from; span > 1; span /= 2) height++;
  const level = Math.floor(height / TILE_HEIGHT);
  const count = 2 ** (height % TILE_HEIGHT);
  const position = from / TILE_WIDTH ** level;
  const n = Math.floor(position / TILE_WIDTH);
  return { tile: { level, n, width: tileWidth(size, level, n) }, first: position % TILE_WIDTH, count };
}

/**
 * Returns the hashes of ranges, as RFC 6962 computes them, in a tree of `size` entries. Requests all tiles in one call.
 * @throws Error if a tile does not have the requested length
 */
async function rangeHashes(
  ranges: readonly EntryRange[],
  size: number,
  read: ReadTiles,
): Promise<readonly Uint8Array[]> {
  const places = ranges.map((range) => perfectSubtrees(range).map((subtree) => placeOf(subtree, size)));
  const wanted = new Map(places.flat().map(({ tile }) => [tilePath(tile), tile]));
  if (wanted.size === 0) return [];
  const ids = [...wanted.values()];
  const tiles = await read(ids);
  const byPath = new Map(ids.map((id, at) => [tilePath(id), checked(id, tiles[at])]));
  return places.map((parts) =>
    parts
      .map(({ tile, first, count }) => {
        const bytes = byPath.get(tilePath(tile)) as Uint8Array;
        return completeRoot(bytes.subarray(first * HASH_SIZE, (first + count) * HASH_SIZE));
      })
      .reduceRight((right, left) => nodeHash(left, right)),
  );
}

function checked(id: TileId, bytes: Uint8Array | undefined): Uint8Array {
  if (bytes?.length === id.width * HASH_SIZE) return bytes;
  throw new Error(
    `${tilePath(id)} should have ${id.width * HASH_SIZE} bytes, and has ${bytes === undefined ? "none" : bytes.length}`,
  );
}

/**
 * Returns the root of the tree of the first `size` entries. @throws Error if a tile does not have the requested length
 */
export async function rootHash(size: number, read: ReadTiles): Promise<Uint8Array> {
  refuseUnsafe(size, 0);
  const [root = EMPTY_ROOT] = size === 0 ? [] : await rangeHashes([{ from: 0, to: size }], size, read);
  return root;
}

/**
 * Returns the hashes from the entry's neighbor up to the root's child (RFC 6962, section 2.1.1).
 * @throws Error if the tree has no such entry, or a tile does not have the requested length
 */
export async function inclusionProof(index: number, size: number, read: ReadTiles): Promise<readonly Uint8Array[]> {
  refuseUnsafe(index, 0);
  refuseUnsafe(size, index + 1);
  const ranges: EntryRange[] = [];
  for (let range: EntryRange = { from: 0, to: size }; range.to - range.from > 1; ) {
    const middle = range.from + splitPoint(range.to - range.from);
    const left = { from: range.from, to: middle };
    const right = { from: middle, to: range.to };
    ranges.push(index < middle ? right : left);
    range = index < middle ? left : right;
  }
  return rangeHashes(ranges.reverse(), size, read);
}

/**
 * Returns the proof that the tree of `oldSize` entries is the beginning of the tree of `newSize` (RFC 6962, section
 * 2.1.2); empty for trees of the same size and for an empty old tree.
 * @throws Error if the old tree is larger, or a tile does not have the requested length
 */
export async function consistencyProof(
  oldSize: number,
  newSize: number,
  read: ReadTiles,
): Promise<readonly Uint8Array[]> {
  refuseUnsafe(oldSize, 0);
  refuseUnsafe(newSize, oldSize);
  if (oldSize === 0 || oldSize === newSize) return [];
  const ranges: EntryRange[] = [];
  let range: EntryRange = { from: 0, to: newSize };
  while (range.to !== oldSize) {
    const middle = range.from + splitPoint(range.to - range.from);
    const left = { from: range.from, to: middle };
    const right = { from: middle, to: range.to };
    ranges.push(oldSize <= middle ? right : left);
    range = oldSize <= middle ? left : right;
  }
  // The verifier has the root of the old tree, so it is omitted if it is part of the new one.
  if (range.from !== 0) ranges.push(range);
  return rangeHashes(ranges.reverse(), newSize, read);
}

export interface Inclusion {
  readonly index: number;
  readonly size: number;
  /** The hash of the entry. */
  readonly leaf: Uint8Array;
  readonly root: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/** @throws Refusal `inclusion_mismatch` unless the proof leads from this leaf, at this index, to the root */
export function verifyInclusion({ index, size, leaf, root, proof }: Inclusion): void {
  if (!isSize(index) || !isSize(size) || index >= size)
    throw new Refusal("inclusion_mismatch", `a tree of ${size} entries has no entry ${index}`);
  let position = index;
  let last = size - 1;
  let hash = leaf;
  for (const sibling of proof) {
    if (last === 0) throw new Refusal("inclusion_mismatch", "the inclusion proof has more hashes than the tree levels");
    if (position % 2 === 1 || position === last) {
      hash = nodeHash(sibling, hash);
      while (position % 2 === 0 && position !== 0) [position, last] = [half(position), half(last)];
    } else hash = nodeHash(hash, sibling);
    [position, last] = [half(position), half(last)];
  }
  if (last !== 0) throw new Refusal("inclusion_mismatch", "the inclusion proof has fewer hashes than the tree levels");
  if (!sameBytes(hash, root))
    throw new Refusal("inclusion_mismatch", `the inclusion proof leads from entry ${index} to a different root`);
}

export interface Consistency {
  readonly oldSize: number;
  readonly oldRoot: Uint8Array;
  readonly newSize: number;
  readonly newRoot: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/** @throws Refusal `consistency_mismatch` unless the proof shows that the old tree is the beginning of the new one */
export function verifyConsistency({ oldSize, oldRoot, newSize, newRoot, proof }: Consistency): void {
  const refuse = (reason: string): never => {
    throw new Refusal("consistency_mismatch", reason);
  };
  if (!isSize(oldSize) || !isSize(newSize) || oldSize > newSize)
    refuse(`a tree of ${oldSize} entries is not the beginning of one with ${newSize}`);
  if (oldSize === 0 || oldSize === newSize) {
    if (proof.length > 0) refuse("the consistency proof should be empty");
    if (!sameBytes(oldRoot, oldSize === 0 ? EMPTY_ROOT : newRoot))
      refuse(`two trees of ${oldSize} entries have different roots`);
    return;
  }
  let position = oldSize - 1;
  let last = newSize - 1;
  while (position % 2 === 1) [position, last] = [half(position), half(last)];
  // If the old tree is one perfect subtree, its root begins the proof but is not included in it.
  const [first = oldRoot, ...rest] = position === 0 ? [oldRoot, ...proof] : proof;
  if (position !== 0 && proof.length === 0) refuse("the consistency proof is empty");
  let older = first;
  let newer = first;
  for (const hash of rest) {
    if (last === 0) refuse("the consistency proof has more hashes than the tree levels");
    if (position % 2 === 1 || position === last) {
      older = nodeHash(hash, older);
      newer = nodeHash(hash, newer);
      while (position % 2 === 0 && position !== 0) [position, last] = [half(position), half(last)];
    } else newer = nodeHash(newer, hash);
    [position, last] = [half(position), half(last)];
  }
  if (last !== 0) refuse("the consistency proof has fewer hashes than the tree levels");
  if (!sameBytes(older, oldRoot)) refuse(`the consistency proof leads to a different root at size ${oldSize}`);
  if (!sameBytes(newer, newRoot)) refuse(`the consistency proof leads to a different root at size ${newSize}`);
}

const half = (value: number): number => Math.floor(value / 2);

const isSize = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

function refuseUnsafe(value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw new RangeError(`${value} is not a whole number from ${least} to 2^53 - 1`);
}

import { completeRoot, HASH_SIZE, nodeHash } from "./hash.ts";
import { type ReadTiles, TILE_WIDTH, type TileId, tilePath, tileWidth } from "./tile.ts";

/** The entries from `from` up to `to`, exclusive. */
export interface EntryRange {
  readonly from: number;
  readonly to: number;
}

const TILE_HEIGHT = 8;

/** Returns the largest power of two smaller than `n`, which must be at least 2. */
export function splitPoint(n: number): number {
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
export async function rangeHashes(
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

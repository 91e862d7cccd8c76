import type { TilePlace } from "../../api/log/log-store.ts";
import { type Edge, growTiles } from "../../packages/verifier/src/tlog/grow.ts";
import { completeRoot, HASH_SIZE, sameBytes } from "../../packages/verifier/src/tlog/hash.ts";
import { levelWidth, TILE_WIDTH, tileWidth } from "../../packages/verifier/src/tlog/tile.ts";
import { ExportRefusal } from "./refusal.ts";

export interface SignedTree {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Reads tiles that need not be true. */
export type ReadTile = (id: TilePlace) => Promise<Uint8Array>;

/** Tile `n` of a level, as wide as it is in the tree. @throws ExportRefusal if it is not the one that was signed */
export type SignedTiles = (level: number, n: number) => Promise<Uint8Array>;

/**
 * The tiles of a signed tree: those at its right edge make the root, and each other one makes its hash in the one above it. So
 * reading from left to right keeps one tile of each level.
 * @throws ExportRefusal if the right edge does not make the root
 */
export async function openSignedTree({ size, root }: SignedTree, read: ReadTile): Promise<SignedTiles> {
  const edge = await readEdge(size, read);
  if (!sameBytes(growTiles({ size, edge, leaves: [] }).root, root))
    throw new ExportRefusal(`The tiles of the log do not make the root that was signed for ${size} entries.`);
  const newest = new Map<number, { readonly n: number; readonly tile: Promise<Uint8Array> }>();
  const checked = async (level: number, n: number): Promise<Uint8Array> => {
    const above = await tileAt(level + 1, Math.floor(n / TILE_WIDTH));
    const hashes = await read({ level, n, width: TILE_WIDTH });
    const place = (n % TILE_WIDTH) * HASH_SIZE;
    if (!sameBytes(completeRoot(hashes), above.subarray(place, place + HASH_SIZE)))
      throw new ExportRefusal(`Tile ${n} of level ${level} is not the one whose hash is in the signed tree.`);
    return hashes;
  };
  const tileAt: SignedTiles = async (level, n) => {
    const known = newest.get(level);
    if (known?.n === n) return known.tile;
    const atEdge = n === lastOf(size, level) ? edge.get(level) : undefined;
    const tile = atEdge === undefined ? checked(level, n) : Promise.resolve(atEdge);
    newest.set(level, { n, tile });
    return tile;
  };
  return tileAt;
}

/** The number of the tile that grows. */
const lastOf = (size: number, level: number): number => Math.floor(levelWidth(size, level) / TILE_WIDTH);

async function readEdge(size: number, read: ReadTile): Promise<Edge> {
  const edge = new Map<number, Uint8Array>();
  for (let level = 0; levelWidth(size, level) > 0; level++) {
    const n = lastOf(size, level);
    const width = tileWidth(size, level, n);
    if (width > 0) edge.set(level, await read({ level, n, width }));
  }
  return edge;
}

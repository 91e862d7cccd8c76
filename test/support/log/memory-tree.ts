import { growTiles } from "../../../packages/verifier/src/tlog/grow.ts";
import { EMPTY_ROOT, HASH_SIZE } from "../../../packages/verifier/src/tlog/hash.ts";
import type { ReadTiles, TileId } from "../../../packages/verifier/src/tlog/tile.ts";

/** A tree whose tiles are kept in memory, grown as a log grows its own. */
export class MemoryTree {
  size = 0;
  root: Uint8Array = EMPTY_ROOT;
  readonly #tiles = new Map<string, Uint8Array>();
  #edge: ReadonlyMap<number, Uint8Array> = new Map();

  /** Appends leaves, given by their hashes. */
  append(leaves: readonly Uint8Array[]): void {
    const { size, root, tiles, edge } = growTiles({ size: this.size, edge: this.#edge, leaves });
    for (const { level, n, hashes } of tiles) this.#tiles.set(`${level}/${n}`, hashes);
    this.size = size;
    this.root = root;
    this.#edge = edge;
  }

  /** The first `width` hashes of a tile. @throws Error if it has fewer */
  tile({ level, n, width }: TileId): Uint8Array {
    const hashes = this.#tiles.get(`${level}/${n}`) ?? new Uint8Array();
    if (hashes.length < width * HASH_SIZE) throw new Error(`the tree has no tile ${level}/${n} of width ${width}`);
    return hashes.subarray(0, width * HASH_SIZE);
  }

  readonly read: ReadTiles = async (ids) => ids.map((id) => this.tile(id));
}

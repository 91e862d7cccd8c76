import type { TilePlace } from "../../api/log/log-store.ts";
import { formatBundle } from "../../packages/verifier/src/tlog/bundle.ts";
import { HASH_SIZE, leafHash, sameBytes } from "../../packages/verifier/src/tlog/hash.ts";
import { entriesPath, levelWidth, TILE_WIDTH, tilePath, tileWidth } from "../../packages/verifier/src/tlog/tile.ts";
import type { Folder } from "./folder.ts";
import { ExportRefusal } from "./refusal.ts";
import { openSignedTree, type ReadTile, type SignedTiles, type SignedTree } from "./signed-tree.ts";

export interface Writing {
  readonly tree: SignedTree;
  /** Entries of it that are there. */
  readonly from: number;
  readonly at: string;
  readonly folder: Folder;
  readonly tileOf: ReadTile;
  readonly entriesOf: (first: number, end: number) => Promise<readonly Uint8Array[]>;
  readonly progress: (entry: number, size: number) => void;
}

/** Bundles at once, each at most 16 MiB. */
const AT_ONCE = 4;

/**
 * Writes the tiles and bundles of a tree that a smaller one does not have. Each is checked against the signed root before it is
 * written.
 */
export async function writeTree(writing: Writing): Promise<void> {
  const { tree, from, progress } = writing;
  if (tree.size === from) return;
  const tiles = await openSignedTree(tree, writing.tileOf);
  const end = Math.ceil(tree.size / TILE_WIDTH);
  for (let n = Math.floor(from / TILE_WIDTH); n < end; n += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, end - n) }, (_, place) =>
      writeBundle(n + place, tiles, writing),
    );
    // What goes on must not write after this function has returned.
    const failed = (await Promise.allSettled(some)).find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    progress(Math.min(tree.size, (n + AT_ONCE) * TILE_WIDTH), tree.size);
  }
  for (let level = 1; levelWidth(tree.size, level) > 0; level++) {
    const first = Math.floor(levelWidth(from, level) / TILE_WIDTH);
    for (let n = first; tileWidth(tree.size, level, n) > 0; n++)
      if (tileWidth(tree.size, level, n) > tileWidth(from, level, n))
        await writeTile({ level, n }, await tiles(level, n), writing);
  }
}

async function writeTile(
  id: Pick<TilePlace, "level" | "n">,
  hashes: Uint8Array,
  { at, folder }: Pick<Writing, "at" | "folder">,
): Promise<void> {
  await folder.keep(`${at}/${tilePath({ ...id, width: hashes.length / HASH_SIZE })}`, hashes);
}

async function writeBundle(n: number, tiles: SignedTiles, writing: Writing): Promise<void> {
  const { tree, at, folder, entriesOf } = writing;
  const width = tileWidth(tree.size, 0, n);
  const hashes = await tiles(0, n);
  const entries = await entriesOf(n * TILE_WIDTH, n * TILE_WIDTH + width);
  if (entries.length !== width)
    throw new ExportRefusal(`The database has ${entries.length} of the ${width} entries from ${n * TILE_WIDTH} on.`);
  for (const [place, entry] of entries.entries())
    if (!sameBytes(leafHash(entry), hashes.subarray(place * HASH_SIZE, (place + 1) * HASH_SIZE)))
      throw new ExportRefusal(`Entry ${n * TILE_WIDTH + place} is not the one whose hash is in the signed tree.`);
  await folder.keep(`${at}/${entriesPath(n, width)}`, formatBundle(entries));
  await writeTile({ level: 0, n }, hashes, writing);
}

import { levelWidth, TILE_WIDTH } from "../../packages/verifier/src/tlog/tile.ts";
import type { Folder } from "./folder.ts";

/**
 * Removes partial tiles and bundles whose full ones belong to a tree of this size: the one before the newest. So readers of
 * that one still find what its checkpoint names.
 */
export async function removeOutgrown(folder: Folder, at: string, size: number): Promise<void> {
  await removeBelow(folder, `${at}/tile/entries`, Math.floor(size / TILE_WIDTH));
  for (let level = 0; levelWidth(size, level) >= TILE_WIDTH; level++)
    await removeBelow(folder, `${at}/tile/${level}`, Math.floor(levelWidth(size, level) / TILE_WIDTH));
}

/** Those with a number below `full`, which is written in the names of the folders: `x001/067.p`. */
async function removeBelow(folder: Folder, path: string, full: number): Promise<void> {
  for (const name of full === 0 ? [] : await folder.list(path)) {
    const file = `${path}/${name}`;
    if (/^x\d{3}$/.test(name)) await removeBelow(folder, file, full);
    const [number = ""] = /(?:x\d{3}\/)*\d{3}(?=\.p$)/.exec(file) ?? [];
    if (number !== "" && Number(number.replace(/[x/]/g, "")) < full) await folder.remove(file);
  }
}

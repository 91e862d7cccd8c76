import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { openLog } from "../../../packages/verifier/src/commands/log-files.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { HASH_SIZE, leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { TILE_WIDTH, tileWidth } from "../../../packages/verifier/src/tlog/tile.ts";
import { rootHash } from "../../../packages/verifier/src/tlog/tree.ts";
import { parseVerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import type { LogSource } from "../../../scripts/log-export/export-log.ts";
import type { FolderLog } from "./log-folder.ts";

/** Logs in memory as a database has them: generations 1, 2 …, the last one in use. */
export const sourceOf = (...logs: readonly FolderLog[]): LogSource => {
  const of = (generation: number): FolderLog => logs[generation - 1] as FolderLog;
  return {
    store: {
      tiles: async (generation, ids) => ids.map((id) => of(generation).tree.tile(id)),
      entries: async (generation, from, to) => of(generation).entries.slice(from, to),
      generations: async () =>
        logs.map(({ log }, place) => ({
          generation: place + 1,
          origin: log.key.name,
          vkey: log.key.vkey,
          startedAt: new Date(0),
        })),
    },
    checkpoints: {
      async served(generation) {
        const { size, root } = of(generation).tree;
        return size === 0 ? null : { size, root, note: await of(generation).checkpoint(), at: new Date(0) };
      },
    },
  };
};

/** Every file below a folder, with its bytes. */
export async function filesIn(folder: string): Promise<ReadonlyMap<string, Buffer>> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((name) => name.isFile()).map((name) => join(name.parentPath, name.name));
  const bytes = await Promise.all(files.map((file) => readFile(file)));
  return new Map(files.map((file, place) => [file.slice(folder.length + 1), bytes[place] as Buffer]).sort() as []);
}

/**
 * The size of the log in a folder, 0 where there is none.
 * @throws Error unless its checkpoint is signed, its tiles make the root, and its entries make its tiles
 */
export async function wholeSize(folder: string, vkey: string): Promise<number> {
  const note = await readFile(join(folder, "checkpoint")).catch(() => null);
  if (note === null) return 0;
  const { text } = await verifyNote(note, [parseVerifierKey(vkey)]);
  const { size, root } = parseCheckpoint(text);
  const log = openLog(folder);
  if (!Buffer.from(await rootHash(size, log.tiles)).equals(root)) throw new Error(`not the root of ${size} entries`);
  for (let n = 0; n * TILE_WIDTH < size; n++) {
    const width = tileWidth(size, 0, n);
    const [tile = new Uint8Array()] = await log.tiles([{ level: 0, n, width }]);
    const leaves = (await log.entries(n, width)).map(leafHash);
    if (!Buffer.concat(leaves).equals(tile) || leaves.length * HASH_SIZE !== tile.length)
      throw new Error(`bundle ${n} does not make its tile`);
  }
  return size;
}

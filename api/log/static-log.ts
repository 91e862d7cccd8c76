import { formatBundle } from "../../packages/verifier/src/tlog/bundle.ts";
import { parseTilePath, TILE_WIDTH } from "../../packages/verifier/src/tlog/tile.ts";
import type { LogStore } from "./log-store.ts";

/** A tile of hashes or a bundle of entries. It never changes. */
export interface Resource {
  readonly kind: "tile" | "entries";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Why there is nothing at a path: it is not written as a path of a tile, or the tree does not reach so far. */
export type Absence = "not_canonical" | "beyond_the_tree";

/** The log as static resources (C2SP tlog-tiles), read from its store. */
export interface StaticLog {
  /** @param path what follows the log's prefix, as it was sent: `tile/0/x001/067.p/12` */
  resource(generation: number, path: string): Promise<Resource | Absence>;
}

/** A request costs at most three reads by primary key, and 256 entries. */
export function createStaticLog(store: LogStore): StaticLog {
  // A tree only grows: what it once reached, it still reaches.
  const reached = new Map<number, number>();
  const reaches = async (generation: number, size: number): Promise<boolean> => {
    if (size <= (reached.get(generation) ?? 0)) return true;
    // Every checkpoint that was stored may be in somebody's hands: a witness has seen it before readers do.
    const newest = (await store.newest(generation))?.size ?? 0;
    reached.set(generation, Math.max(newest, reached.get(generation) ?? 0));
    return size <= newest;
  };
  return {
    async resource(generation, path) {
      const asked = parseTilePath(path);
      if (asked === null) return "not_canonical";
      const { n, width } = asked;
      const level = "level" in asked ? asked.level : 0;
      if (!(await reaches(generation, (n * TILE_WIDTH + width) * TILE_WIDTH ** level))) return "beyond_the_tree";
      if (!("level" in asked)) {
        const entries = await store.entries(generation, n * TILE_WIDTH, n * TILE_WIDTH + width);
        if (entries.length !== width) throw new Error(`log ${generation}: entries of ${path} are missing`);
        return { kind: "entries", bytes: formatBundle(entries) };
      }
      const [tile = null] = await store.tiles(generation, [{ level, n, width }]);
      if (tile === null) throw new Error(`log ${generation}: ${path} is missing`);
      return { kind: "tile", bytes: new Uint8Array(tile) };
    },
  };
}

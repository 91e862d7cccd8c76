import { EMPTY_ROOT } from "../../packages/verifier/src/tlog/hash.ts";
import { rootHash } from "../../packages/verifier/src/tlog/tree.ts";
import { findFork, type OwnHead } from "./fork-check.ts";
import type { KnownHead, KnownHeads } from "./known-heads.ts";
import type { LogStore } from "./log-store.ts";

export interface TrustParts {
  readonly generation: number;
  readonly origin: string;
  readonly store: Pick<LogStore, "newest" | "tiles">;
  readonly heads: KnownHeads;
  /** Milliseconds since an arbitrary moment; never runs backwards. */
  readonly elapsedMs: () => number;
}

/** `wait`: ask again later. */
export type Finding =
  | { readonly is: "trusted"; readonly own: OwnHead; readonly silent: readonly string[] }
  | { readonly is: "wait" | "fork"; readonly problem: string };

/** With some of them silent, so long are the silent ones waited for. */
const SOME_SILENT_MS = 600_000;
/** With all of them silent: records queue meanwhile, nothing is lost. */
const ALL_SILENT_MS = 86_400_000;

/**
 * Whether the database still has everything that was published of the log, as witnesses and anchors know it. Their silence
 * is waited for, but not without end: a dead witness must not stop the log for good.
 */
export function createForkCheck({ generation, origin, store, heads, elapsedMs }: TrustParts) {
  let askedSince: number | null = null;
  const rootAt = async (size: number): Promise<Uint8Array> => {
    if (size === 0) return EMPTY_ROOT;
    return rootHash(size, async (ids) => {
      const tiles = await store.tiles(generation, ids);
      return tiles.map((tile) => tile ?? new Uint8Array());
    });
  };
  return {
    rootAt,
    /** @param remembered what this process itself has seen committed */
    async check(remembered: readonly KnownHead[]): Promise<Finding> {
      // Before the database is read: what is published has been committed before.
      const { heads: known, silent } = await heads.ask(origin);
      const newest = await store.newest(generation);
      const own = newest ?? { size: 0, root: EMPTY_ROOT, at: null };
      const problem = await findFork(own, [...known, ...remembered], rootAt);
      if (problem !== null) return { is: "fork", problem };
      askedSince = silent.length === 0 ? null : (askedSince ?? elapsedMs());
      const patience = silent.length < heads.sources ? SOME_SILENT_MS : ALL_SILENT_MS;
      if (askedSince !== null && elapsedMs() - askedSince < patience)
        return { is: "wait", problem: `${silent.join(" and ")} cannot be asked what is known of the log` };
      return { is: "trusted", own, silent };
    },
  };
}

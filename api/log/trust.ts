import { EMPTY_ROOT } from "../../packages/verifier/src/tlog/hash.ts";
import { rootHash } from "../../packages/verifier/src/tlog/tree.ts";
import { findFork, type OwnHead } from "./fork-check.ts";
import type { KnownHead, KnownHeads } from "./known-heads.ts";
import type { LogStore } from "./log-store.ts";
import { createPatience } from "./patience.ts";

export interface TrustParts {
  readonly generation: number;
  readonly store: Pick<LogStore, "newest" | "tiles">;
  readonly heads: KnownHeads;
  /** Milliseconds since an arbitrary moment; never runs backwards. */
  readonly elapsedMs: () => number;
}

/** `wait`: some do not answer, and are to be asked again later. */
export type Finding =
  | { readonly is: "trusted"; readonly own: OwnHead; readonly silent: readonly string[] }
  | { readonly is: "wait"; readonly own: OwnHead; readonly silent: readonly string[] }
  | { readonly is: "fork"; readonly problem: string };

/**
 * Whether the database still has everything that was published of the log, as witnesses and anchors know it. Their silence
 * is waited for, but not without end: a dead witness must not stop the log for good.
 */
export function createForkCheck({ generation, store, heads, elapsedMs }: TrustParts) {
  const isPatient = createPatience(elapsedMs);
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
      const answers = await heads.ask();
      const own = (await store.newest(generation)) ?? { size: 0, root: EMPTY_ROOT, at: null };
      const problem = await findFork(own, [...answers.heads, ...remembered], rootAt);
      if (problem !== null) return { is: "fork", problem };
      const { silent } = answers;
      return { is: isPatient(answers, heads.sources) ? "wait" : "trusted", own, silent };
    },
  };
}

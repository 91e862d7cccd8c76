import type { LogStore } from "../store.ts";
import type { AnchorChain } from "./chain.ts";
import type { AnchorStore, Progress } from "./store.ts";

export interface AnchoringParts {
  readonly generation: number;
  readonly origin: string;
  readonly store: Pick<LogStore, "newest">;
  readonly anchors: AnchorStore;
  readonly chain: AnchorChain;
  readonly everySeconds: number;
  readonly log: { error(facts: object, message: string): void };
}

/**
 * Anchors the newest checkpoint every `everySeconds`, in one process, and follows the anchor until its block is final. The
 * first anchor is made `everySeconds` after the log began.
 */
export function createAnchoring({ generation, origin, store, anchors, chain, everySeconds, log }: AnchoringParts) {
  return async (): Promise<void> => {
    if ((await anchors.open(generation)) === null) {
      const newest = await store.newest(generation);
      if (newest !== null) await anchors.begin(generation, newest, everySeconds);
    }
    const open = await anchors.open(generation);
    if (open === null) return;
    const progress = await chain.carry(origin, open);
    if (isSame(progress, open)) return;
    await anchors.progress(generation, open.size, progress);
    if (progress.state === "failed") log.error({ size: open.size }, "the chain rejects an anchor of the log");
  };
}

const isSame = (one: Progress, other: Progress): boolean =>
  one.state === other.state && one.transaction === other.transaction && one.block === other.block;

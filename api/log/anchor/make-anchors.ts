import type { LogStore } from "../store.ts";
import type { AnchorChain, AnchorStore, Progress } from "./store.ts";

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
 * Anchors the newest checkpoint once in a while, whatever process comes first, and follows the anchor until its block is
 * final. The first one comes as long after the log's beginning as the others come after each other.
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
    if (progress.state === "failed") log.error({ size: open.size }, "the chain refuses an anchor of the log");
  };
}

const isSame = (one: Progress, other: Progress): boolean =>
  one.state === other.state && one.transaction === other.transaction && one.block === other.block;

import { LRUCache } from "lru-cache";
import { type BlockRange, type LogFilter, type LogReader, larger, type MinedLog, smaller } from "./logs.ts";
import { asReading } from "./nodes.ts";
import type { Allowance } from "./pace.ts";

/** Beyond this depth, a node that answers has had a block's logs for a long time. */
const SETTLED_SECONDS = 1_800;
/** How long an empty answer about newer blocks counts. */
const BELIEVED_MS = 60_000;
/** Positions are small, and a lost one only costs another search. */
const REMEMBERED = 10_000;

/**
 * The blocks that may contain a log. The first page begins (`up`) or ends (`down`) at `start`, where it most likely is.
 */
export interface SearchArea extends BlockRange {
  readonly start: bigint;
  readonly first: "up" | "down";
  readonly head: bigint;
}

export interface Search<Found> {
  /** Identifies the log, so that the next search continues where this one stopped. */
  readonly key: string;
  readonly filter: LogFilter;
  readonly area: SearchArea;
  /** Returns the log's result from a page; null if it is not there. */
  readonly read: (logs: readonly MinedLog[]) => Found | null;
  readonly blockOf: (found: Found) => bigint;
  readonly allowance: Allowance;
  /** How many nodes to try for the likeliest page before the others; default 1. */
  readonly nodes?: number;
}

/** `unfinished`: more calls are needed. `nowhere`: complete searches over a minute did not find it. */
export type SearchResult<Found> = { readonly found: Found } | "unfinished" | "nowhere";

interface Position {
  /** The blocks searched without a result; null if there are none. */
  covered: BlockRange | null;
  coveredSince: number;
  /** When a search first failed to find the log. */
  missedSince: number;
  /** The block in which it was last found. */
  place: bigint | null;
  /** How often it was missing from its expected block. Each time, another node is called first. */
  misses: number;
}

export interface LogSearchParts {
  readonly logs: LogReader;
  readonly blockSeconds: number;
  readonly pause: (ms: number) => Promise<void>;
  readonly now?: () => number;
}

/**
 * Searches for a log that must exist, likeliest blocks first, within the allowed calls. The next search continues where
 * this one stopped. An empty response is never evidence, because its node may lack the blocks.
 */
export function createLogSearch({ logs, blockSeconds, pause, now = () => performance.now() }: LogSearchParts) {
  const positions = new LRUCache<string, Position>({ max: REMEMBERED });
  const settledDepth = BigInt(Math.ceil(SETTLED_SECONDS / blockSeconds));

  const positionOf = (key: string, head: bigint): Position => {
    const since = { coveredSince: now(), missedSince: now() };
    const position = positions.get(key) ?? { covered: null, ...since, place: null, misses: 0 };
    positions.set(key, position);
    const isOld = position.covered !== null && position.covered.to <= head - settledDepth;
    if (!isOld && now() - position.coveredSince > BELIEVED_MS) position.covered = null;
    if (position.covered === null) position.coveredSince = now();
    return position;
  };

  return async function search<Found>(wanted: Search<Found>): Promise<SearchResult<Found>> {
    const { key, filter, area, read, blockOf, allowance, nodes = 1 } = wanted;
    const position = positionOf(key, area.head);
    const page = async (range: BlockRange, at: "start" | "end") => {
      const found = await asReading(position.misses, () => logs.page(filter, range, { at, allowance }));
      const shown = found === null ? null : read(found.logs);
      if (shown !== null) position.place = blockOf(shown);
      return { blocks: found?.read ?? null, shown };
    };
    if (position.place !== null) {
      const { shown } = await page({ from: position.place, to: position.place }, "start");
      if (shown !== null) return { found: shown };
      position.place = null;
    }
    let asked = 0;
    let isPatient = area.first === "up" && area.to === area.head && area.head - area.start < settledDepth;
    for (let next = nextRange(position.covered, area); next !== null; next = nextRange(position.covered, area)) {
      const { blocks, shown } = await page(next, next.at);
      if (shown !== null) return { found: shown };
      if (blocks === null) return "unfinished";
      // The newest blocks' logs may lag slightly behind the state that implies them.
      if (isPatient && blocks.to === area.head && allowance.left() > 0) {
        isPatient = false;
        position.misses++;
        await pause(250);
        continue;
      }
      // A node that has pruned these blocks shows none of their logs.
      if (position.covered === null && ++asked < nodes) {
        position.misses++;
        continue;
      }
      position.covered = joined(position.covered, blocks);
    }
    position.covered = null;
    position.misses++;
    return now() - position.missedSince > BELIEVED_MS ? "nowhere" : "unfinished";
  };
}

/** Returns the next blocks to search; null once all have been searched. */
function nextRange(covered: BlockRange | null, area: SearchArea): (BlockRange & { at: "start" | "end" }) | null {
  const { from, to, start, first } = area;
  if (covered === null) return first === "up" ? { from: start, to, at: "start" } : { from, to: start, at: "end" };
  const up = covered.to < to ? ({ from: covered.to + 1n, to, at: "start" } as const) : null;
  const down = covered.from > from ? ({ from, to: covered.from - 1n, at: "end" } as const) : null;
  return first === "up" ? (up ?? down) : (down ?? up);
}

const joined = (covered: BlockRange | null, more: BlockRange): BlockRange =>
  covered === null ? more : { from: smaller(covered.from, more.from), to: larger(covered.to, more.to) };

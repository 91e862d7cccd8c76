import { formatProof } from "../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../packages/verifier/src/tlog/tree.ts";
import type { LogCheckpoints } from "./checkpoints-store.ts";
import type { LogPlaces } from "./log-section.ts";
import type { StaticLog } from "./static-routes.ts";
import type { LoggedEntry, LogStore, StoredCheckpoint } from "./store.ts";

/** Returns a proof that an entry is in the log. */
export type ProveEntry = (entry: LoggedEntry) => Promise<string>;

/** Proofs share a checkpoint for this long, which is shorter than the time between two checkpoints. */
const SHARED_MS = 250;

export interface ProveParts {
  readonly store: Pick<LogStore, "tiles">;
  readonly checkpoints: Pick<LogCheckpoints, "proving" | "quorum">;
  /** A monotonic clock. */
  readonly elapsedMs: () => number;
}

/**
 * Creates self-contained proofs (C2SP tlog-proof): the entry's bytes, its inclusion path, and the newest checkpoint that
 * enough witnesses have cosigned. A proof reads at most two tiles per level in one query, and sometimes the checkpoint.
 */
export function createProveEntry({ store, checkpoints, elapsedMs }: ProveParts): ProveEntry {
  const shared = new Map<number, { readonly checkpoint: StoredCheckpoint; readonly at: number }>();
  const covering = async (generation: number, index: number): Promise<StoredCheckpoint> => {
    const known = shared.get(generation);
    if (known !== undefined && known.checkpoint.size > index && elapsedMs() - known.at < SHARED_MS)
      return known.checkpoint;
    const at = elapsedMs();
    const checkpoint = await checkpoints.proving(generation, index);
    if (checkpoint === null || checkpoint.size <= index)
      throw new Error(`log ${generation}: no checkpoint covers entry ${index}`);
    // A checkpoint that waits for witnesses is read each time, so that a proof includes every cosignature.
    if (cosignatures(checkpoint) >= checkpoints.quorum) shared.set(generation, { checkpoint, at });
    return checkpoint;
  };
  return async ({ generation, index, entry }) => {
    const { size, note } = await covering(generation, index);
    const hashes = await inclusionProof(index, size, (ids) => store.tiles(generation, ids));
    return formatProof({ index, hashes, checkpoint: note, extra: entry });
  };
}

/** The number of signatures, without the log's own. */
const cosignatures = ({ note }: StoredCheckpoint): number => note.split("\n\u2014 ").length - 2;

/** The log, as the routes read it. */
export interface PublicLog {
  /** The generation that is written now. It and all earlier ones have routes. */
  readonly generation: number;
  readonly store: LogStore;
  readonly checkpoints: LogCheckpoints;
  readonly resources: StaticLog;
  readonly places: LogPlaces;
  readonly prove: ProveEntry;
}

/** Returns the generations of the log, oldest first. */
export const generationsOf = ({ generation }: PublicLog): readonly number[] =>
  Array.from({ length: generation }, (_, place) => place + 1);

import { formatProof } from "../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../packages/verifier/src/tlog/tree.ts";
import type { LogPlaces } from "./log-section.ts";
import type { LogCheckpoints, ServedCheckpoint } from "./served-checkpoint.ts";
import type { StaticLog } from "./static-routes.ts";
import type { LoggedEntry, LogStore } from "./store.ts";

/** Proves that an entry is in the log. */
export type ProveEntry = (entry: LoggedEntry) => Promise<string>;

/** For how long proofs share a checkpoint: shorter than the log takes to sign another one. */
const SHARED_MS = 250;

export interface ProveParts {
  readonly store: Pick<LogStore, "tiles">;
  readonly checkpoints: Pick<LogCheckpoints, "proving" | "quorum">;
  /** A clock that never goes back. */
  readonly elapsedMs: () => number;
}

/**
 * Makes self-contained proofs (C2SP tlog-proof): the entry's bytes, its inclusion path, and the newest checkpoint that
 * enough witnesses have cosigned. A proof costs one read of at most two tiles a level, and now and then the checkpoint's.
 */
export function createProveEntry({ store, checkpoints, elapsedMs }: ProveParts): ProveEntry {
  const shared = new Map<number, { readonly checkpoint: ServedCheckpoint; readonly at: number }>();
  const covering = async (generation: number, index: number): Promise<ServedCheckpoint> => {
    const known = shared.get(generation);
    if (known !== undefined && known.checkpoint.size > index && elapsedMs() - known.at < SHARED_MS)
      return known.checkpoint;
    const at = elapsedMs();
    const checkpoint = await checkpoints.proving(generation, index);
    if (checkpoint === null || checkpoint.size <= index)
      throw new Error(`log ${generation}: no checkpoint covers entry ${index}`);
    // One that waits for its witnesses is read each time: a proof is as good as it can be.
    if (cosignatures(checkpoint) >= checkpoints.quorum) shared.set(generation, { checkpoint, at });
    return checkpoint;
  };
  return async ({ generation, index, entry }) => {
    const { size, note } = await covering(generation, index);
    const hashes = await inclusionProof(index, size, async (ids) =>
      (await store.tiles(generation, ids)).map((tile, place) => {
        if (tile === null) throw new Error(`log ${generation}: tile ${JSON.stringify(ids[place])} is missing`);
        return tile;
      }),
    );
    return formatProof({ index, hashes, checkpoint: note, extra: entry });
  };
}

/** Signatures besides the log's own. */
const cosignatures = ({ note }: ServedCheckpoint): number => note.split("\n\u2014 ").length - 2;

/** The log, as the routes read it. */
export interface PublicLog {
  /** The log that is written now. There are routes for it and for all before it. */
  readonly generation: number;
  readonly store: LogStore;
  readonly checkpoints: LogCheckpoints;
  readonly resources: StaticLog;
  readonly places: LogPlaces;
  readonly prove: ProveEntry;
}

/** Every log of the service, oldest first. */
export const generationsOf = ({ generation }: PublicLog): readonly number[] =>
  Array.from({ length: generation }, (_, place) => place + 1);

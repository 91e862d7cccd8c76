import { formatProof } from "../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../packages/verifier/src/tlog/tree.ts";
import type { LoggedEntry, LogStore } from "./log-store.ts";
import type { LogCheckpoints } from "./served-checkpoint.ts";

/** Proves that an entry is in the log. */
export type ProveEntry = (entry: LoggedEntry) => Promise<string>;

/**
 * Makes self-contained proofs (C2SP tlog-proof): the entry's bytes, its inclusion path, and the newest checkpoint that
 * enough witnesses have cosigned. A proof costs two reads of the checkpoint and one of at most two tiles a level.
 */
export const createProveEntry =
  (store: Pick<LogStore, "tiles">, checkpoints: Pick<LogCheckpoints, "proving">): ProveEntry =>
  async ({ generation, index, entry }) => {
    const checkpoint = await checkpoints.proving(generation, index);
    if (checkpoint === null || checkpoint.size <= index)
      throw new Error(`log ${generation}: no checkpoint covers entry ${index}`);
    const hashes = await inclusionProof(index, checkpoint.size, async (ids) =>
      (await store.tiles(generation, ids)).map((tile, place) => {
        if (tile === null) throw new Error(`log ${generation}: tile ${JSON.stringify(ids[place])} is missing`);
        return tile;
      }),
    );
    return formatProof({ index, hashes, checkpoint: checkpoint.note, extra: entry });
  };

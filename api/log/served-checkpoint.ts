import type { StoredCheckpoint } from "./store.ts";

/** A checkpoint as readers get it. `note` has the log's signature and every stored cosignature. */
export type ServedCheckpoint = StoredCheckpoint;

export interface WitnessOverview {
  readonly name: string;
  readonly vkey: string;
  /** The size of the newest checkpoint that it has cosigned, or null. */
  readonly size: number | null;
  /** The time of that cosignature. */
  readonly at: Date | null;
}

/** The checkpoints that readers get. */
export interface LogCheckpoints {
  /** The number of cosignatures that make a checkpoint witnessed. */
  readonly quorum: number;
  /** Returns the checkpoint to serve, or null while the log is empty. */
  served(generation: number): Promise<ServedCheckpoint | null>;
  /** Returns the newest witnessed checkpoint with this entry, else the newest one with it, else null. */
  proving(generation: number, index: number): Promise<ServedCheckpoint | null>;
  /** Returns the configured witnesses, in their order. */
  witnesses(generation: number): Promise<readonly WitnessOverview[]>;
}

export interface Choice<Checkpoint> {
  readonly newest: Checkpoint;
  /** The newest checkpoint that enough witnesses have cosigned, or null. */
  readonly witnessed: Checkpoint | null;
  /** The time that the first checkpoint after it has waited for witnesses, or null if there is none. */
  readonly waitedMs: number | null;
}

/** Prefers a witnessed checkpoint, unless that takes too long: slow witnesses must not stop the log. */
const toServe = <Checkpoint>({ newest, witnessed, waitedMs }: Choice<Checkpoint>, waitMs: number): Checkpoint =>
  witnessed === null || (waitedMs !== null && waitedMs > waitMs) ? newest : witnessed;

/** The checkpoints of one log, and the size that was served. */
export interface Servable {
  /** Returns null while the log is empty. */
  choice(): Promise<Choice<StoredCheckpoint> | null>;
  /** Returns the largest size that any process has served, or null. */
  served(): Promise<number | null>;
  /** Stores that this size is served, and returns the largest size that may have been served. */
  serve(size: number): Promise<number>;
  at(size: number): Promise<StoredCheckpoint>;
}

/**
 * Returns the checkpoint to serve. Its tree is never smaller than one that any process has served: a checkpoint that was
 * served because its witnesses were late stays, even if they cosign an earlier one meanwhile.
 */
export async function nextServed(log: Servable, waitMs: number): Promise<StoredCheckpoint | null> {
  const [choice, before] = await Promise.all([log.choice(), log.served()]);
  if (choice === null) return null;
  const best = toServe(choice, waitMs);
  const size = before !== null && best.size <= before ? before : await log.serve(best.size);
  return size === best.size ? best : log.at(size);
}

/** A tree that a source outside the database knows. */
export interface KnownHead {
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** The source, for the operator: a witness's name, or an anchor's block. */
  readonly source: string;
  /** When the tree was seen or cosigned, or null if unknown. */
  readonly at: Date | null;
}

export interface KnownTo {
  readonly heads: readonly KnownHead[];
  /** The sources that did not respond, with the reasons. */
  readonly silent: readonly string[];
}

/**
 * The published size of this log, according to the witnesses that cosigned it and the anchors on a chain. A database that
 * was restored from a backup does not know what it lost; these sources do.
 */
export interface KnownHeads {
  readonly sources: number;
  /**
   * Queries all sources. Never rejects: a source that does not respond is listed in `silent`. A source that has not seen
   * the log yet responds without a head, and is not silent.
   */
  ask(): Promise<KnownTo>;
}

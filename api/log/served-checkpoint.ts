import type { StoredCheckpoint } from "./store.ts";

/** A checkpoint as readers get it: `note` has the log's signature and every cosignature that is stored for it. */
export type ServedCheckpoint = StoredCheckpoint;

export interface WitnessOverview {
  readonly name: string;
  readonly vkey: string;
  /** Of the newest checkpoint that it has cosigned, and when; null before it has cosigned any. */
  readonly size: number | null;
  readonly at: Date | null;
}

/** Which checkpoints are shown. */
export interface LogCheckpoints {
  /** How many witnesses make a checkpoint count as witnessed. */
  readonly quorum: number;
  /** Null while the log is empty. */
  served(generation: number): Promise<ServedCheckpoint | null>;
  /** For the proof of an entry: the newest witnessed checkpoint with it, else the newest; null if it is in none. */
  proving(generation: number, index: number): Promise<ServedCheckpoint | null>;
  /** Those of the settings, in their order. */
  witnesses(generation: number): Promise<readonly WitnessOverview[]>;
}

export interface Choice<Checkpoint> {
  readonly newest: Checkpoint;
  /** The newest that enough witnesses have cosigned; null if there is none. */
  readonly witnessed: Checkpoint | null;
  /** For how long the first checkpoint after it has waited for witnesses; null if there is none. */
  readonly waitedMs: number | null;
}

/** Readers get what is witnessed, unless that takes too long: a log must not stand still because witnesses do. */
const toServe = <Checkpoint>({ newest, witnessed, waitedMs }: Choice<Checkpoint>, waitMs: number): Checkpoint =>
  witnessed === null || (waitedMs !== null && waitedMs > waitMs) ? newest : witnessed;

/** The checkpoints of one log, and how far it was served. */
export interface Servable {
  /** Null while the log is empty. */
  choice(): Promise<Choice<StoredCheckpoint> | null>;
  /** The largest size that any process has served; null before the first. */
  served(): Promise<number | null>;
  /** Returns the largest size that may have been served, this one included. It is stored before it returns. */
  serve(size: number): Promise<number>;
  at(size: number): Promise<StoredCheckpoint>;
}

/**
 * The checkpoint to serve, never one of a smaller tree than any process has served before: one that was served because its
 * witnesses were late stays, though they cosign the one before it meanwhile.
 */
export async function nextServed(log: Servable, waitMs: number): Promise<StoredCheckpoint | null> {
  const [choice, before] = await Promise.all([log.choice(), log.served()]);
  if (choice === null) return null;
  const best = toServe(choice, waitMs);
  const size = before !== null && best.size <= before ? before : await log.serve(best.size);
  return size === best.size ? best : log.at(size);
}

/** A tree as somebody outside the database knows it. */
export interface KnownHead {
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** Who says so, for the operator: a witness's name, or the transaction of an anchor. */
  readonly source: string;
  /** When it was seen or cosigned; null where that is not known. */
  readonly at: Date | null;
}

/** What those know who were asked. */
export interface KnownTo {
  readonly heads: readonly KnownHead[];
  /** Who did not answer, and why. */
  readonly silent: readonly string[];
}

/**
 * What was published of this log, as those tell who have seen it: witnesses that cosigned it, anchors on a chain. A
 * database that was restored from a backup does not know what it has lost; they do.
 */
export interface KnownHeads {
  /** How many could be asked; with none, nothing can be known from outside. */
  readonly sources: number;
  /**
   * Asks all of them. Never rejects for one that does not answer: it is named in `silent`. A source that has not seen the
   * log yet answers without a head, and is not silent.
   */
  ask(): Promise<KnownTo>;
}

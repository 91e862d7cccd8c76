import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";

/** A checkpoint as it was signed, before any witness has seen it. */
export interface StoredCheckpoint {
  /** How many entries the tree has. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** The signed note, with the log's own signature alone. */
  readonly note: string;
  readonly at: Date;
}

/** A tile of the tree, up to 256 hashes wide (C2SP tlog-tiles). */
export interface TilePlace {
  readonly level: number;
  readonly n: number;
  readonly width: number;
}

export interface LoggedEntry {
  readonly type: EntryType;
  /** The record's id: a certificate's, a verdict's, a payment's (`0x…`), a version. */
  readonly ref: string;
  readonly generation: number;
  readonly index: number;
  /** The leaf's bytes. */
  readonly entry: Uint8Array;
  readonly at: Date;
}

/** A log of its own: an origin and a key. The newest is written; the others have ended. */
export interface Generation {
  readonly generation: number;
  readonly origin: string;
  readonly vkey: string;
  readonly startedAt: Date;
}

/** Reads what is in the log. Everything that it returns is committed, and is never changed. */
export interface LogStore {
  newest(generation: number): Promise<StoredCheckpoint | null>;
  checkpointAt(generation: number, size: number): Promise<StoredCheckpoint | null>;
  /** In the order asked: the first `32 * width` bytes of each, or null where there are not as many. */
  tiles(generation: number, ids: readonly TilePlace[]): Promise<readonly (Uint8Array | null)[]>;
  /** The entries from index `from` until before `to`: fewer where the tree ends. */
  entries(generation: number, from: number, to: number): Promise<readonly Uint8Array[]>;
  find(type: EntryType, ref: string): Promise<LoggedEntry | null>;
  /** The entries of one record of any of these types, in the order of the log. */
  findAll(ref: string, types: readonly EntryType[]): Promise<readonly LoggedEntry[]>;
  at(generation: number, index: number): Promise<LoggedEntry | null>;
  /** Oldest first. */
  generations(): Promise<readonly Generation[]>;
}

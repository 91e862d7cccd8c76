import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import type { Edge, Growth } from "../../packages/verifier/src/tlog/grow.ts";
import type { Announced, Waiting } from "./entry-documents.ts";
import type { Generation } from "./log-store.ts";

/** The end of the tree, as a transaction that holds the log's lock sees it. */
export interface TreeEnd {
  readonly size: number;
  /** Null for an empty tree. */
  readonly root: Uint8Array | null;
  readonly at: Date | null;
  readonly edge: Edge;
  /** Seconds since the newest checkpoint, by the database's clock, which may have been set back; infinite if there is none. */
  readonly age: number;
  /** As `LogWriter.server` says. */
  readonly server: string;
  /** Whether a later generation has begun. */
  readonly hasEnded: boolean;
}

/** A row of the queue. */
export interface Queued extends Omit<Waiting, "recorded"> {
  readonly seq: string;
  /** Null for one that is in the log already, and for one whose record is not there. */
  readonly recorded: Waiting["recorded"] | null;
  readonly isLogged: boolean;
}

export interface NewEntry {
  readonly type: EntryType;
  readonly ref: string;
  readonly index: number;
  readonly entry: Uint8Array;
}

/** One transaction in which nobody else writes the log. All of it happens, or nothing. */
export interface WritingTurn {
  readonly end: TreeEnd;
  /** The oldest rows after `seq`, in their order, with their records; rows of `except` are passed over. */
  waiting(after: string, limit: number, except: readonly string[]): Promise<readonly Queued[]>;
  /** Adds entries, and takes rows from the queue. */
  append(entries: readonly NewEntry[], done: readonly string[]): Promise<void>;
  /** Stores what the tree has become, and the signed checkpoint: the turn's last word. */
  publish(growth: Growth, note: string): Promise<void>;
}

/** Writes the log. Any number of processes may try at once; one has the turn. */
export interface LogWriter {
  /** Whether anything waits, besides rows with these numbers. */
  hasWaiting(except: readonly string[]): Promise<boolean>;
  /** Another text when the database server is another one or has been started again, or the database was restored on it. */
  server(): Promise<string>;
  /** Remembers, for all processes, that the log was checked on this server, and nothing is missing. */
  vouch(generation: number, server: string): Promise<void>;
  /** Whether the log was checked on this server. */
  isVouchedFor(generation: number, server: string): Promise<boolean>;
  /** Runs the work in a turn; null if another process has it. Rejects when nothing of it may have happened. */
  inTurn<T>(generation: number, work: (turn: WritingTurn) => Promise<T>): Promise<T | null>;
  /** Adds the generation unless it is there, and returns the one that is. No turn of an earlier one writes after it. */
  begin(generation: Omit<Generation, "startedAt">): Promise<Generation>;
  /** Queues what is neither queued nor logged; a signing key, again when it returns after another one. */
  announce(announced: readonly Announced[]): Promise<void>;
  /** Queues reversals that no trigger could see. */
  queueMissed(): Promise<void>;
}

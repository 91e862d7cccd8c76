import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import type { LoggedEntry } from "./log-store.ts";

/** An entry, and who has signed a tree that contains it. */
export interface LogPlace extends LoggedEntry {
  /** The names of the witnesses' keys. */
  readonly witnesses: readonly string[];
}

/** Finds records in the log. */
export interface LogPlaces {
  /** The entries of a record, oldest first; empty until its first one is integrated. */
  of(ref: string, types: readonly EntryType[]): Promise<readonly LogPlace[]>;
  at(generation: number, index: number): Promise<LogPlace | null>;
}

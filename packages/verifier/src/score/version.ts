import type { Json } from "../strict-json.ts";

/** What records of all versions share. */
export interface ScoreRecord {
  readonly wallet: string;
  readonly score: number;
  readonly tier: string;
  readonly score_version: number;
  readonly as_of: string;
  readonly as_of_block: number;
  readonly components: Readonly<Record<string, { readonly points: number; readonly max: number }>>;
  readonly inputs_sha256: string;
}

/**
 * A version of the score: the facts it reads and everything it computes from them. It is never edited; a change makes a
 * new one.
 */
export interface ScoreVersion<Document extends ScoreRecord = ScoreRecord> {
  readonly version: number;
  /**
   * The record that follows from a record's facts.
   * @param path the location of the facts, for errors
   * @throws InputError if they are not facts of this version
   */
  readonly compute: (inputs: Json | undefined, path: string) => Promise<Document>;
}

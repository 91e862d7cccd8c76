import type { Json } from "../strict-json.ts";

/** What the records of all versions have in common. */
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

/** A version of the score: the facts that it reads and all that it computes from them. It is never edited; a change is a new one. */
export interface ScoreVersion<Document extends ScoreRecord = ScoreRecord> {
  readonly version: number;
  /**
   * The record that a record's facts give.
   * @param path the place of the facts, for errors
   * @throws InputError when they are no facts of this version
   */
  readonly compute: (inputs: Json | undefined, path: string) => Promise<Document>;
}

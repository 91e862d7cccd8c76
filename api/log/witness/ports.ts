/** A cosignature that has been verified. */
export interface Cosignature {
  readonly keyName: string;
  /** 8 hex digits. */
  readonly keyId: string;
  /** The signature line, with its newline. */
  readonly line: string;
  /** POSIX time that it names. */
  readonly seconds: number;
}

/** What is known of one configured witness. */
export interface WitnessRecord {
  readonly vkey: string;
  /** Of the newest checkpoint that it has cosigned, and when; null before it has cosigned any. */
  readonly cosigned: { readonly size: number; readonly at: Date } | null;
  readonly failures: number;
  /** Why its last answer did not count, and when; null once it has cosigned again. */
  readonly error: { readonly text: string; readonly at: Date } | null;
  readonly danger: string | null;
}

export interface Turn {
  /** What the witness is thought to have. */
  readonly size: number;
  readonly failures: number;
  /** To be called when it is over, whatever came of it. */
  end(): void;
}

/** What witnesses have, shared by all processes. */
export interface WitnessStore {
  /**
   * Takes the turn to ask a witness, if it is due: it lacks the newest checkpoint, or was asked long ago. Null if it is not
   * due, or another process has the turn. A turn of a process that has died is over.
   */
  takeTurn(place: Place, newest: number): Promise<Turn | null>;
  /** It has cosigned a checkpoint of this size. */
  accept(place: Place, size: number, cosignatures: readonly Cosignature[]): Promise<void>;
  /** It has not. `size` is what it says to have; `danger` undefined leaves what is known. */
  fail(place: Place, failure: Failure): Promise<void>;
  list(generation: number): Promise<readonly WitnessRecord[]>;
}

export interface Place {
  readonly generation: number;
  readonly vkey: string;
}

/** So long is a witness left alone that fails and fails. */
export const LONGEST_WAIT_SECONDS = 60;

export interface Failure {
  readonly error: string;
  /** At most `LONGEST_WAIT_SECONDS`. */
  readonly waitSeconds: number;
  readonly size?: number;
  readonly danger?: string;
}

/** An answer over HTTP, its body cut off where it is too long. */
export interface WitnessReply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Talks to witnesses. Rejects if there is no whole answer in time. */
export interface WitnessCalls {
  post(url: string, body: string): Promise<WitnessReply>;
  get(url: string): Promise<WitnessReply>;
}

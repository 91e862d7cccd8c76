/** A checkpoint as readers get it: with the log's signature and all cosignatures that are stored. */
export interface ServedCheckpoint {
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  readonly note: string;
  readonly at: Date;
}

/** A configured witness, and the newest tree that it has cosigned. */
export interface WitnessOverview {
  readonly name: string;
  readonly vkey: string;
  readonly size: number | null;
  readonly at: Date | null;
}

export interface LogCheckpoints {
  readonly quorum: number;
  served(generation: number): Promise<ServedCheckpoint | null>;
  proving(generation: number, index: number): Promise<ServedCheckpoint | null>;
  witnesses(generation: number): Promise<readonly WitnessOverview[]>;
}

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

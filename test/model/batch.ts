/** What may happen to the transactions of our own relayer. */
export interface Relaying {
  /** A call in a batch may fail, by its own payer's doing or a neighbor's. */
  readonly fails?: true;
  /** Somebody else who has the key uses a nonce. */
  readonly elsewhere?: true;
  /** A transaction may be replaced by the same one at other fees. */
  readonly replaced?: true;
  /** Processes send from two keys, while one is exchanged for another. */
  readonly keys?: 2;
  /** No batch is smaller. */
  readonly least?: 2;
}

/** Our own relayer, in worlds that have one. */
export interface Relay {
  /** What waits for a batch. */
  readonly queue: readonly Entry[];
  readonly transactions: readonly Transaction[];
  /** The nonce that somebody else has used, and whether that is final. */
  readonly elsewhere: { readonly nonce: number; readonly final: boolean } | null;
}

export interface Entry {
  readonly authorization: number;
  /** The lease token that it was queued with is still the row's. */
  readonly holds: boolean;
  readonly key: number;
}

/** A batch: what the ledger knows of it, and what has become of it. */
export interface Transaction {
  readonly key: number;
  readonly nonce: number;
  /** The authorizations in its calldata. */
  readonly calls: readonly number[];
  /** Those of them that the ledger keeps as its members, and which of these it believes to have failed. */
  readonly members: readonly number[];
  readonly failed: readonly number[];
  readonly stored: "never" | "sent" | "mined" | "lost";
  /** The block that the ledger has it in, as `block`. */
  readonly storedBlock: Block;
  readonly broadcast: boolean;
  readonly replaced: boolean;
  readonly block: Block;
  readonly final: boolean;
  /** The calls that failed in that block. */
  readonly wrong: readonly number[];
  /** It was mined at the fees that it had before it was replaced. */
  readonly mined: "at its old fees" | "as it is";
}

/** In no block, in one before the reorganization, or in one after it. */
export type Block = 0 | 1 | 2;

/** A rule about batches that is switched off. */
export type BatchOff =
  | "one-member"
  | "member-of-any-key"
  | "only-members-are-carried"
  | "joined-to-its-lease"
  | "withdrawn"
  | "committed-before-broadcast"
  | "stored-is-broadcast"
  | "freed-when-lost"
  | "lost-at-a-final-block"
  | "lost-is-looked-for-twice"
  | "any-hash-is-looked-for"
  | "mask-of-a-standing-block";

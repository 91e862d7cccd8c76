/** The possible events for our relayer's transactions. */
export interface Relaying {
  /** A call in a batch may fail because of its payer or a neighbor. */
  readonly fails?: true;
  /** Another user of the key takes a nonce. */
  readonly elsewhere?: true;
  /** A transaction may be replaced by the same one at other fees. */
  readonly replaced?: true;
  /** Processes send from two keys during a key change. */
  readonly keys?: 2;
  /** The smallest batch size. */
  readonly least?: 2;
}

/** Our relayer, in worlds that have one. */
export interface Relay {
  /** The payments that wait for a batch. */
  readonly queue: readonly Entry[];
  readonly transactions: readonly Transaction[];
  /** The nonce that another user of the key has taken, and whether that is final. */
  readonly elsewhere: { readonly nonce: number; readonly final: boolean } | null;
}

export interface Entry {
  readonly authorization: number;
  /** Whether its lease token is still the row's. */
  readonly holds: boolean;
  readonly key: number;
}

/** A batch as the ledger knows it, and its state on the chain. */
export interface Transaction {
  readonly key: number;
  readonly nonce: number;
  /** The authorizations in its calldata. */
  readonly calls: readonly number[];
  /** The calls that the ledger keeps as its members, and the members that the ledger considers failed. */
  readonly members: readonly number[];
  readonly failed: readonly number[];
  readonly stored: "never" | "sent" | "mined" | "lost";
  /** The ledger's value of `block`. */
  readonly storedBlock: Block;
  readonly broadcast: boolean;
  readonly replaced: boolean;
  readonly block: Block;
  readonly final: boolean;
  /** The calls that failed in that block. */
  readonly wrong: readonly number[];
  /** Whether it was mined at its original fees or as it is now. */
  readonly mined: "at its old fees" | "as it is";
}

/** 0 for no block, 1 for one before the reorganization, and 2 for one after it. */
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
  | "failure-in-a-current-block";

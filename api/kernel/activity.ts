/** How many UTC calendar days of a wallet's history count (SPEC.md, limits). */
export const ACTIVITY_DAYS = 90;

/** A wallet's public USDC history over `ACTIVITY_DAYS`, from `firstDay` to `lastDay` (SPEC.md, verification record). */
export interface Activity {
  /** Outgoing authorised payments above zero, excluding those to itself and to the service. */
  readonly settledPayments: number;
  /** Addresses it paid or was paid by, excluding itself and the service. */
  readonly distinctCounterparties: number;
  /** Whole days since its last transfer in the window; null if it had none. */
  readonly lastSeenDays: number | null;
  /** `YYYY-MM-DD`, UTC; both days are inclusive. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** `authorised`: the index does not contain plain transfers. */
  readonly scope: "full" | "authorised" | "selective";
  /** The index starts at this block, even if the window reaches further back. */
  readonly firstBlock: number;
}

/** The payments' and the escrows' halves of the index may be so many blocks apart. */
export const MAX_BLOCKS_APART = 30;

/** How far the index has read the chain: of its two halves the one that is behind. */
export interface IndexPosition {
  readonly block: number;
  readonly timestamp: Date;
  /** How many blocks the other half is ahead; beyond `MAX_BLOCKS_APART` the index counts as unavailable. */
  readonly blocksApart: number;
}

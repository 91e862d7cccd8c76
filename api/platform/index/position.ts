/** How many UTC calendar days of a wallet's history count (SPEC.md, limits). */
export const ACTIVITY_DAYS = 90;

/** The smallest transfer that makes a counterparty, in USDC: the score's smallest qualifying payment. */
export const COUNTERPARTY_FLOOR = "0.001";

/** A wallet's public USDC history over `ACTIVITY_DAYS`, from `firstDay` to `lastDay` (SPEC.md, verification record). */
export interface Activity {
  /** Outgoing authorized payments above zero, excluding those to itself and to the service. */
  readonly settledPayments: number;
  /** Addresses it paid or was paid by, excluding itself, the service, and transfers below `COUNTERPARTY_FLOOR`. */
  readonly distinctCounterparties: number;
  /** Whole days since its last transfer in the window; null if it had none. */
  readonly lastSeenDays: number | null;
  /** `YYYY-MM-DD`, UTC; both days are inclusive. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** `selective`: the index does not contain plain transfers. */
  readonly scope: "full" | "selective";
  /** The index starts at this block, even if the window reaches further back. */
  readonly firstBlock: number;
}

/** How far the index has read the chain. */
export interface IndexPosition {
  readonly block: number;
  readonly timestamp: Date;
}

/** How many UTC calendar days of a wallet's history are looked at (SPEC.md, limits). */
export const ACTIVITY_DAYS = 90;

/** A wallet's public USDC history over `ACTIVITY_DAYS`, from `firstDay` to `lastDay` (SPEC.md, verification record). */
export interface Activity {
  /** Outgoing authorised payments of more than nothing, not to itself and not to the service. */
  readonly settledPayments: number;
  /** Addresses that it paid or was paid by, without itself and the service. */
  readonly distinctCounterparties: number;
  /** Whole days since its last transfer in the window; null when there is none. */
  readonly lastSeenDays: number | null;
  /** `YYYY-MM-DD`, UTC; both days are in the window. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** `authorised`: plain transfers are not in the index. */
  readonly scope: "full" | "authorised";
  /** The index knows nothing of earlier blocks, even when they lie in the window. */
  readonly firstBlock: number;
}

/** How far the index has read the chain. */
export interface IndexPosition {
  readonly block: number;
  readonly timestamp: Date;
}

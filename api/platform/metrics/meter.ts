import type { Network } from "../networks.ts";
import type { Because } from "../relayer/places.ts";

/** The counters of this process since its start. */
export interface Meter {
  /** `route` is a pattern of the route table, never a path from a client. */
  request(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly seconds: number;
  }): void;
  /** Counts a payment that entered a state of the journal. `reason` is empty except for void payments and baits. */
  payment(state: string, reason: string): void;
  /** Counts a settlement seen on the chain `seconds` after its submission. */
  settled(network: Network, seconds: number): void;
  /** Counts a batch of payments that was sent. */
  batch(network: Network, sent: SentBatch): void;
  /**
   * Counts our transaction of payments when it is found in a block, and again after a reorganization into another one.
   */
  relayed(network: Network, mined: MinedTransaction): void;
  /** Counts a stuck transaction that was replaced by one with higher fees. */
  replaced(network: Network): void;
  /** Counts a payment that was not sent. */
  turnedAway(network: Network, because: Because): void;
  /** Records whether a network's payments may share transactions. */
  batching(network: Network, isOn: boolean): void;
  /** Counts a mined transaction with outcomes of several escrowed payments. */
  outcomes(network: Network, mined: MinedOutcomes): void;
  certificate(product: string, result: string): void;
  verdict(category: string, outcome: string): void;
}

export interface MinedTransaction {
  readonly payments: number;
  /** The payments that did not settle. */
  readonly failed: number;
  readonly gas: bigint;
  /** The cost, including data on a parent chain. */
  readonly feeWei: bigint;
}

export interface SentBatch {
  readonly payments: number;
  /** The waiting payments that another run had taken over or sent. */
  readonly skipped: number;
  /** How long the first payment waited for others. */
  readonly waitedSeconds: number;
}

export interface MinedOutcomes {
  /** The number of outcomes that it carried out. */
  readonly served: number;
  readonly gas: bigint;
}

/** The rows waiting in the database, by state. Empty states may be missing. */
export interface Backlog {
  /** Payments in `received`, `settling`, `settled`, and `fulfilled` while the settlement is not final. */
  readonly payments: Readonly<Record<string, number>>;
  /** Payments that are parked without progress. They count in no state. */
  readonly parkedPayments: number;
  /** The escrow's tasks: `open`, `mined`. */
  readonly escrowTasks: Readonly<Record<string, number>>;
  /** Signatures that are never submitted, stored until they expire. */
  readonly withheldSignatures: number;
}

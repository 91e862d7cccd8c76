import type { Network } from "../networks.ts";
import type { Because } from "../relayer/places.ts";

/** What is counted while the service runs, since this process started. */
export interface Meter {
  /** `route` is a pattern of the route table, never a path a client sent. */
  request(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly seconds: number;
  }): void;
  /** A payment entered a state of the journal; `reason` is empty except for void payments and baits. */
  payment(state: string, reason: string): void;
  /** A settlement was seen on chain, `seconds` after it was submitted. */
  settled(network: Network, seconds: number): void;
  /** Payments that had waited for each other set out together. */
  batch(network: Network, sent: SentBatch): void;
  /** A transaction of ours with payments was found in a block; in another one, after a reorganization, it counts again. */
  relayed(network: Network, mined: MinedTransaction): void;
  /** A stuck transaction was replaced by one that offers more. */
  replaced(network: Network): void;
  /** A payment was not sent, for want of a place or because too much gas was lost. */
  turnedAway(network: Network, because: Because): void;
  /** Whether a network's payments may share transactions. */
  batching(network: Network, isOn: boolean): void;
  /** A transaction with outcomes of several escrowed payments was mined. */
  outcomes(network: Network, mined: MinedOutcomes): void;
  certificate(product: string, result: string): void;
  verdict(category: string, outcome: string): void;
}

export interface MinedTransaction {
  readonly payments: number;
  /** Those of them that did not settle. */
  readonly failed: number;
  readonly gas: bigint;
  /** What it cost, data on a parent chain included. */
  readonly feeWei: bigint;
}

export interface SentBatch {
  readonly payments: number;
  /** Those that waited too, but that another run had taken over or sent. */
  readonly skipped: number;
  /** How long the first of them waited for others. */
  readonly waitedSeconds: number;
}

export interface MinedOutcomes {
  /** How many it carried out. */
  readonly served: number;
  readonly gas: bigint;
}

/** What is waiting in the database, by state. Empty states may be missing. */
export interface Backlog {
  /** Of the journal: `received`, `settling`, `settled`, and `fulfilled` while the settlement is not final. */
  readonly payments: Readonly<Record<string, number>>;
  /** Of the journal too: set aside, because they make no progress. They count in no state. */
  readonly parkedPayments: number;
  /** Of the escrow's tasks: `open`, `mined`. */
  readonly escrowTasks: Readonly<Record<string, number>>;
  /** Signatures that are never submitted, stored until they expire. */
  readonly withheldSignatures: number;
}

import type { Settlement } from "../platform/chain/view.ts";
import type { Completion, RecordedAnswer, StoredAnswer } from "../platform/http/answer.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Extensions, ProtocolVersion } from "./scheme.ts";
import type { Row, State, Write } from "./step-types.ts";

/** A payment as it enters the journal. */
export interface NewPayment {
  readonly key: PaymentKey;
  readonly scheme: string;
  /** The scheme's data, stored as JSON. */
  readonly details: unknown;
  readonly paymentId: string | null;
  readonly digest: Hex;
  readonly signature: Hex;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly route: string;
  readonly fingerprint: Buffer;
  readonly input: unknown;
  /**
   * The client's extensions, for a facilitator that lists routes; null without extensions, or for another facilitator.
   */
  readonly extensions: Extensions | null;
  readonly payTo: Address;
  readonly value: bigint;
  readonly version: ProtocolVersion;
  /** The chain's head when the payment arrived; the search for its settlement starts there. */
  readonly headBlock: number;
  readonly receivedAt: Date;
}

/**
 * The data needed to finish a payment without its client. It is stored before the signature leaves the process, and
 * cleared when the payment is void. Without it, a retry brings it.
 */
export type Kept = Pick<NewPayment, "signature" | "input" | "details" | "extensions">;

/** A journal row with everything needed to finish its payment once its signature may have left the process. */
export interface PaymentRow extends Row, Omit<NewPayment, "signature" | "fingerprint" | "digest" | "paymentId"> {
  readonly signatureSha256: string;
  readonly failures: number;
}

/** A payment without progress, as it appears in an alert. */
export interface ParkedPayment {
  readonly payer: Address;
  readonly nonce: Hex;
  readonly route: string;
  readonly state: State;
  readonly failures: number;
  readonly receivedAt: Date;
}

/** The limit of payments in flight per payer. It bounds the gas and work that one payer can make us waste. */
export const MOST_IN_FLIGHT = 16;

/**
 * The number of a payer's failures on the chain within an hour after which it is barred. After the first, fewer are in
 * flight.
 */
export const MOST_FAILED = 3;

/**
 * The result of inserting a payment, or of taking an abandoned one: the number of rows, `crowded` if the payer has too
 * many payments in flight, or `barredSeconds`, the time for which the payer is barred because too many have failed.
 */
export type Entered = number | "crowded" | { readonly barredSeconds: number };

/** The completion of a sale. */
export interface Ended {
  readonly completion: Completion;
  /** Stored in the same transaction, even for a row in settling; null if the row already has it. */
  readonly settlement: Settlement | null;
}

/** A payment that is being submitted or may be submitted soon. */
export interface InFlight {
  readonly nonce: Hex;
  readonly value: bigint;
}

/** An error after which no part of the sale has been stored. */
export class NotStored extends Error {}

/**
 * The journal of payments. Every write is one guarded statement that returns the number of rows it changed (0 or 1). A
 * statement whose commit was not acknowledged rejects, and its outcome is unknown.
 */
export interface Journal {
  find(
    key: PaymentKey,
    paymentId: string | null,
  ): Promise<{ readonly row: PaymentRow | null; readonly sameId: PaymentRow | null }>;
  /** Stores everything except the fields of `Kept`. */
  insert(payment: NewPayment, token: string): Promise<Entered>;
  /** Deletes a received payment that no run holds. Its signature has never left us. */
  free(key: PaymentKey): Promise<number>;
  /**
   * Inserts a payment that is never submitted, with its answer. Its record is written in the same transaction, or not
   * at all if the result is 0 rows.
   */
  withhold(payment: NewPayment, recorded: RecordedAnswer): Promise<number>;
  take(key: PaymentKey, seen: State, token: string): Promise<Entered>;
  /**
   * Returns the payments of the same payer that are in flight and entered before this one, by insertion or by `take`:
   * those in settling, and those in received with a live lease.
   */
  inFlightBefore(key: PaymentKey): Promise<readonly InFlight[]>;
  revive(key: PaymentKey, token: string, kept: Kept): Promise<number>;
  release(key: PaymentKey, token: string, failed: boolean): Promise<number>;
  heartbeat(key: PaymentKey, token: string): Promise<number>;
  /**
   * `kept` is written with the change from received to settling, and only then. That change requires a live lease:
   * without one, the payment was not in flight, and others may have been admitted.
   */
  write(key: PaymentKey, token: string, change: Write & { readonly kept?: Kept }): Promise<number>;
  /**
   * Moves settled to fulfilled and stores everything that completes the sale, in one transaction. Returns null if
   * another run owns the row by now. Rejects with `NotStored` if no part has been stored; after any other failure the
   * outcome is unknown.
   */
  complete(key: PaymentKey, token: string, ended: Ended): Promise<StoredAnswer | null>;
  /**
   * Claims due, unfinished rows without a live lease, for half a minute. Rows without progress are parked, and later
   * claims include only a few of them. The responses of fulfilled payments are omitted.
   */
  due(limit: number): Promise<readonly PaymentRow[]>;
  /** Schedules the next check of fulfilled payments, in one statement, without other changes. */
  postpone(keys: readonly PaymentKey[]): Promise<void>;
  /**
   * Marks fulfilled payments as final, in one statement, if they have no live lease and their settlement is still in
   * the block that was found final. Replaces their lease tokens.
   */
  finalize(settled: readonly { readonly key: PaymentKey; readonly settlement: Settlement }[]): Promise<number>;
  /** The sealed signature of a payment, from settling until the payment is final. */
  signature(key: PaymentKey): Promise<Hex | null>;
  /**
   * Deletes a batch of payments that were never submitted, or that are void and not referenced elsewhere, an hour after
   * their window has closed. Returns their number; 0 when there are no more.
   */
  prune(): Promise<number>;
  /** Counts the unresolved payments that may make progress, up to a limit. */
  backlog(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
  /**
   * Returns the payments parked since the last alert. Each one is returned once, across all processes, and the call
   * returns none within an hour of the last ones.
   */
  nameParked(): Promise<readonly ParkedPayment[]>;
}

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
  /** What the scheme stores for it, as JSON. */
  readonly details: unknown;
  readonly paymentId: string | null;
  readonly digest: Hex;
  readonly signature: Hex;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly route: string;
  readonly fingerprint: Buffer;
  readonly input: unknown;
  /** What its client sent along for a facilitator that lists routes; null for nothing, and for any other facilitator. */
  readonly extensions: Extensions | null;
  readonly payTo: Address;
  readonly value: bigint;
  readonly version: ProtocolVersion;
  /** The chain's head when the payment arrived; the search for its settlement starts there. */
  readonly headBlock: number;
  readonly receivedAt: Date;
}

/**
 * What finishing a payment without its client takes. Stored before the signature leaves the process, and cleared when the
 * payment is void: until then a retry brings it.
 */
export type Kept = Pick<NewPayment, "signature" | "input" | "details" | "extensions">;

/** A journal row with everything needed to finish its payment, once its signature may have left the process. */
export interface PaymentRow extends Row, Omit<NewPayment, "signature" | "fingerprint" | "digest" | "paymentId"> {
  readonly signatureSha256: string;
  readonly failures: number;
}

/** A payment without progress, as an alert names it. */
export interface ParkedPayment {
  readonly payer: Address;
  readonly nonce: Hex;
  readonly route: string;
  readonly state: State;
  readonly failures: number;
  readonly receivedAt: Date;
}

/** How many payments of one payer are in flight at once: what a payer can make us spend in vain has a bound. */
export const MOST_IN_FLIGHT = 16;

/** How many payments a payer may make fail on the chain within an hour until none is let in. After one, fewer are in flight. */
export const MOST_FAILED = 3;

/**
 * What came of entering the journal, or of taking an abandoned payment: `crowded` if the payer has too many in flight,
 * `barredSeconds` for how long it is not let in because too many have failed.
 */
export type Entered = number | "crowded" | { readonly barredSeconds: number };

/** How a sale ends. */
export interface Ended {
  readonly completion: Completion;
  /** Stored with it, from settling as well; null if the row has it already. */
  readonly settlement: Settlement | null;
}

/** A payment that is being submitted, or may soon be. */
export interface InFlight {
  readonly nonce: Hex;
  readonly value: bigint;
}

/** Nothing of a sale has been stored. */
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
  /** Stores everything but what `Kept` names. */
  insert(payment: NewPayment, token: string): Promise<Entered>;
  /** Deletes a payment that was received and that nobody holds: its signature has never left us. */
  free(key: PaymentKey): Promise<number>;
  /**
   * Inserts a payment that is never submitted, with its answer. Its record is written in the same transaction, or not
   * at all for 0 rows.
   */
  withhold(payment: NewPayment, recorded: RecordedAnswer): Promise<number>;
  take(key: PaymentKey, seen: State, token: string): Promise<Entered>;
  /**
   * The same payer's payments that are in flight and were inserted, or taken while received, before this one: in
   * settling, or in received with a live lease.
   */
  inFlightBefore(key: PaymentKey): Promise<readonly InFlight[]>;
  revive(key: PaymentKey, token: string, kept: Kept): Promise<number>;
  release(key: PaymentKey, token: string, failed: boolean): Promise<number>;
  heartbeat(key: PaymentKey, token: string): Promise<number>;
  /**
   * `kept` comes with the write from received to settling, and with no other. That one needs a live lease: without one
   * the payment was not in flight, and others may have been let in.
   */
  write(key: PaymentKey, token: string, change: Write & { readonly kept?: Kept }): Promise<number>;
  /**
   * Moves settled to fulfilled and stores everything that completes the sale, in one transaction. Null if another run
   * owns the row by now. Rejects with `NotStored` when nothing has been stored; after another failure that is unknown.
   */
  complete(key: PaymentKey, token: string, ended: Ended): Promise<StoredAnswer | null>;
  /**
   * Claims unfinished rows that are due and have no live lease: for half a minute nobody else gets them. Those without
   * progress for long are set aside, and then come a few at a time. Answers of fulfilled payments are left out.
   */
  due(limit: number): Promise<readonly PaymentRow[]>;
  /** Schedules another look at fulfilled payments, in one statement, without changing them otherwise. */
  postpone(keys: readonly PaymentKey[]): Promise<void>;
  /**
   * Marks fulfilled payments as final, in one statement: those without a live lease whose settlement is still in the
   * block that was found final. Replaces their lease tokens.
   */
  finalize(settled: readonly { readonly key: PaymentKey; readonly settlement: Settlement }[]): Promise<number>;
  /** The sealed signature of a payment, from settling until the payment is final. */
  signature(key: PaymentKey): Promise<Hex | null>;
  /**
   * Deletes some of the payments that were never submitted, or are void without a trace elsewhere, and whose window has
   * been over for an hour. Returns how many; 0 when there are no more.
   */
  prune(): Promise<number>;
  /** What waits for its outcome and may make progress. Of many thousands, some are counted. */
  backlog(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
  /**
   * Payments set aside since the last alert, each one named once, whatever process asks; none within an hour of the
   * last ones.
   */
  nameParked(): Promise<readonly ParkedPayment[]>;
}

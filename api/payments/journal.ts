import type { Completion, RecordedAnswer, StoredAnswer } from "../kernel/completion.ts";
import type { PaymentKey } from "../kernel/route.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { ProtocolVersion } from "./scheme.ts";
import type { Row, Settlement, State, Write } from "./step-types.ts";

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
  readonly payTo: Address;
  readonly value: bigint;
  readonly version: ProtocolVersion;
  /** The chain's head when the payment arrived; the search for its settlement starts there. */
  readonly headBlock: number;
  readonly receivedAt: Date;
}

/** A journal row with everything needed to finish its payment. */
export interface PaymentRow extends Row, Omit<NewPayment, "signature" | "fingerprint" | "digest" | "paymentId"> {
  readonly signatureSha256: string;
  readonly failures: number;
}

/**
 * The journal of payments. Every write is one guarded statement that returns the number of rows it changed (0 or 1). A
 * statement whose commit was not acknowledged rejects, and its outcome is unknown.
 */
export interface Journal {
  find(
    key: PaymentKey,
    paymentId: string | null,
  ): Promise<{ readonly row: PaymentRow | null; readonly sameId: PaymentRow | null }>;
  insert(payment: NewPayment, token: string): Promise<number>;
  /**
   * Inserts a payment that is never submitted, with its answer. Its record is written in the same transaction, or not
   * at all for 0 rows.
   */
  withhold(payment: NewPayment, recorded: RecordedAnswer): Promise<number>;
  take(key: PaymentKey, seen: State, token: string): Promise<number>;
  revive(key: PaymentKey, token: string): Promise<number>;
  release(key: PaymentKey, token: string, failed: boolean): Promise<number>;
  heartbeat(key: PaymentKey, token: string): Promise<number>;
  write(key: PaymentKey, token: string, change: Write): Promise<number>;
  /**
   * Moves settled to fulfilled and stores everything that completes the sale, in one transaction. Null if another run
   * owns the row by now.
   */
  complete(key: PaymentKey, token: string, completion: Completion): Promise<StoredAnswer | null>;
  /** Unfinished rows that are due and have no live lease, oldest first. */
  due(limit: number): Promise<readonly PaymentRow[]>;
  /** Schedules another look at fulfilled payments, in one statement, without changing them otherwise. */
  postpone(keys: readonly PaymentKey[]): Promise<void>;
  /**
   * Marks fulfilled payments as final, in one statement: those without a live lease whose settlement is still in the
   * block that was found final. Replaces their lease tokens.
   */
  finalise(settled: readonly { readonly key: PaymentKey; readonly settlement: Settlement }[]): Promise<number>;
  /** The sealed signature of a payment, kept until the payment is final. */
  signature(key: PaymentKey): Promise<Hex | null>;
  /** Deletes payments that were never submitted and whose window closed long ago. */
  prune(): Promise<number>;
  backlog(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
}

import type { Completion, RecordedAnswer, StoredAnswer } from "../kernel/completion.ts";
import type { PaymentKey } from "../kernel/route.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { ProtocolVersion } from "./scheme.ts";
import type { Row, Settlement, State, Write } from "./step-types.ts";

/** A payment as it enters the journal. */
export interface NewPayment {
  readonly key: PaymentKey;
  readonly scheme: string;
  /** What the scheme keeps of it, as JSON. */
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
  /** The chain's head when the payment arrived: its settlement is looked for from there. */
  readonly headBlock: number;
  readonly receivedAt: Date;
}

/** A journal row with all that finishing its payment takes. */
export interface PaymentRow extends Row, Omit<NewPayment, "signature" | "fingerprint" | "digest" | "paymentId"> {
  readonly signatureSha256: string;
  readonly failures: number;
}

/**
 * The journal of payments. Every write is one guarded statement that answers how many rows it changed (0 or 1); a statement
 * whose commit was not acknowledged rejects, and then nothing is known.
 */
export interface Journal {
  find(
    key: PaymentKey,
    paymentId: string | null,
  ): Promise<{ readonly row: PaymentRow | null; readonly sameId: PaymentRow | null }>;
  insert(payment: NewPayment, token: string): Promise<number>;
  /** A payment that is never submitted, with its answer; what it records runs in the same transaction, and not at all for 0 rows. */
  withhold(payment: NewPayment, recorded: RecordedAnswer): Promise<number>;
  take(key: PaymentKey, seen: State, token: string): Promise<number>;
  revive(key: PaymentKey, token: string): Promise<number>;
  release(key: PaymentKey, token: string, failed: boolean): Promise<number>;
  heartbeat(key: PaymentKey, token: string): Promise<number>;
  write(key: PaymentKey, token: string, change: Write): Promise<number>;
  /** From settled to fulfilled, with everything that completes the sale, in one transaction. Null when the row is another's by now. */
  complete(key: PaymentKey, token: string, completion: Completion): Promise<StoredAnswer | null>;
  /** Unfinished rows without a live lease whose time to look has come, oldest first. */
  due(limit: number): Promise<readonly PaymentRow[]>;
  /** Looks at fulfilled payments again later, all in one statement: they stand as they were found. */
  postpone(keys: readonly PaymentKey[]): Promise<void>;
  /**
   * Marks fulfilled payments as final, all in one statement: those without a live lease whose settlement still is in the block that
   * was found final. Their lease token changes hands.
   */
  finalise(settled: readonly { readonly key: PaymentKey; readonly settlement: Settlement }[]): Promise<number>;
  /** The sealed signature of a payment, until it is final. */
  signature(key: PaymentKey): Promise<Hex | null>;
  /** Removes payments that were never submitted and whose window is long over. */
  prune(): Promise<number>;
  backlog(): Promise<{ readonly unresolved: number; readonly oldestSeconds: number | null }>;
}

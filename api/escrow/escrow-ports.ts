import type { Network } from "../kernel/networks.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Decision } from "./evaluation.ts";
import type { EscrowStatus, Hold, PaymentInfo } from "./payment.ts";

/** An evaluation as stored permanently. */
export interface Evaluation {
  readonly payment: Hex;
  readonly decision: Decision;
  readonly rule: string;
  readonly record: Hex;
  /** The signed document, byte for byte. */
  readonly document: string;
}

/** An evaluation and its outcome on chain. */
export interface Answered {
  readonly evaluation: Evaluation;
  readonly status: "pending" | "released" | "refunded";
  /** The transaction that carried it out. */
  readonly transaction: Hex | null;
}

/** What should happen to one payment on chain. Each payment has one task, so both outcomes are never requested. */
export interface Task {
  readonly network: Network;
  readonly contract: Address;
  readonly payment: Hex;
  readonly info: PaymentInfo;
  /** What should happen or, for a final task, what did happen. */
  readonly decision: Decision;
  /** SHA-256 of the evaluation; null if the clock alone decided. */
  readonly record: Hex | null;
  /** The last transaction sent for it, or the one that carried it out. */
  readonly transaction: Hex | null;
  /** `final` is the end; a reorganization may still undo `mined`. */
  readonly state: "open" | "mined" | "final";
}

export interface EscrowStore {
  evaluation(payment: Hex): Promise<Evaluation | null>;
  task(payment: Hex): Promise<Task | null>;
  /** Stores an evaluation and its task, both or neither; 0 if the payment already has a task. */
  decide(hold: Hold, evaluation: Evaluation): Promise<number>;
  /** Stores a refund decided by the clock; 0 if the payment already has a task. */
  timeOut(hold: Hold): Promise<number>;
  /** Claims due tasks for half a minute each: open ones before mined ones, then by longest wait. */
  take(limit: number): Promise<readonly Task[]>;
  /** Records where a task stands; it is looked at again after the given number of seconds. */
  note(
    payment: Hex,
    seen: { readonly state: "open" | "mined"; readonly transaction: Hex | null; readonly seconds: number },
  ): Promise<void>;
  /** Records the permanent outcome, which may differ from the decision; the task is never looked at again. */
  end(payment: Hex, decision: Decision, transaction: Hex | null): Promise<void>;
  /** Whether the relayer holds this transaction, so that it, or its replacement, will still be mined. */
  isCarried(transaction: Hex): Promise<boolean>;
}

/** Our own view of the escrow contracts. Every method rejects if the chain cannot be read. */
export interface EscrowChain {
  /** Searches the contracts' logs, newest first; null if there is none. */
  holdById(payment: Hex): Promise<Hold | null>;
  holdByTransaction(transaction: Hex): Promise<Hold | null>;
  status(
    hold: { readonly contract: Address; readonly payment: Hex },
    at: "latest" | "finalized",
  ): Promise<EscrowStatus>;
  /** Whether an account, or a contract by ERC-1271, signed the digest. */
  isSigned(signer: Address, digest: Hex, signature: Hex): Promise<boolean>;
  /** The transaction that released or refunded a payment; null if there is none yet. */
  outcome(hold: { readonly contract: Address; readonly payment: Hex }): Promise<Hex | null>;
  /** Unix seconds of the head. */
  time(): Promise<number>;
}

/** Sends to the escrow contracts; returns the hash of the broadcast transaction. */
export interface EscrowSender {
  /** Sends the arbiter's decision. */
  send(task: Task): Promise<Hex>;
  /** The outcome of a transaction, or of its replacement, within the time. */
  waitFor(transaction: Hex, timeoutMs: number): Promise<"mined" | "reverted" | "pending">;
}

/** Holds that were not decided in time. */
export interface OverdueHolds {
  /** Held and past `refundable_from` (unix seconds), oldest first; null if the index does not answer. */
  overdue(now: number, limit: number): Promise<readonly Hold[] | null>;
}

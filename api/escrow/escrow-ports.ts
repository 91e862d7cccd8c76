import type { Network } from "../kernel/networks.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Decision } from "./evaluation.ts";
import type { EscrowStatus, Hold, PaymentInfo } from "./payment.ts";

/** An evaluation as it is kept for ever. */
export interface Evaluation {
  readonly payment: Hex;
  readonly decision: Decision;
  readonly rule: string;
  readonly record: Hex;
  /** The signed document, byte for byte. */
  readonly document: string;
}

/** An evaluation, and what has become of it on the chain. */
export interface Answered {
  readonly evaluation: Evaluation;
  readonly status: "pending" | "released" | "refunded";
  /** The transaction that did it. */
  readonly transaction: Hex | null;
}

/** What is to happen to one payment on the chain. There is one for each, so both outcomes are never asked for. */
export interface Task {
  readonly network: Network;
  readonly contract: Address;
  readonly payment: Hex;
  readonly info: PaymentInfo;
  /** What is to happen; of a final task, what happened. */
  readonly decision: Decision;
  /** SHA-256 of the evaluation; null when only the clock decided. */
  readonly record: Hex | null;
  /** The last transaction that was sent for it, or the one that did it. */
  readonly transaction: Hex | null;
  /** `final` is the end; `mined` may still be taken back by a reorganisation. */
  readonly state: "open" | "mined" | "final";
}

export interface EscrowStore {
  evaluation(payment: Hex): Promise<Evaluation | null>;
  task(payment: Hex): Promise<Task | null>;
  /** Keeps an evaluation with its task, both or neither; 0 when the payment has a task already. */
  decide(hold: Hold, evaluation: Evaluation): Promise<number>;
  /** A refund that the clock decided; 0 when the payment has a task already. */
  timeOut(hold: Hold): Promise<number>;
  /** Takes tasks that are due for half a minute each: open ones before those that are mined, then those that waited longest. */
  take(limit: number): Promise<readonly Task[]>;
  /** Notes where a task stands; it is looked at again after so many seconds. */
  note(
    payment: Hex,
    seen: { readonly state: "open" | "mined"; readonly transaction: Hex | null; readonly seconds: number },
  ): Promise<void>;
  /** Notes what has happened for good, which may be other than what was decided; the task is never looked at again. */
  end(payment: Hex, decision: Decision, transaction: Hex | null): Promise<void>;
  /** Whether the relayer carries this transaction, so that it, or the one that replaces it, is still going to be mined. */
  isCarried(transaction: Hex): Promise<boolean>;
}

/** Our own reading of the escrow contracts; every method rejects when the chain cannot be read. */
export interface EscrowChain {
  /** Looked for in the contracts' logs, newest first; null when there is none. */
  holdById(payment: Hex): Promise<Hold | null>;
  holdByTransaction(transaction: Hex): Promise<Hold | null>;
  status(
    hold: { readonly contract: Address; readonly payment: Hex },
    at: "latest" | "finalized",
  ): Promise<EscrowStatus>;
  /** Whether an account, or a contract by ERC-1271, signed the digest. */
  isSigned(signer: Address, digest: Hex, signature: Hex): Promise<boolean>;
  /** The transaction that released or refunded a payment; null when there is none yet. */
  outcome(hold: { readonly contract: Address; readonly payment: Hex }): Promise<Hex | null>;
  /** Unix seconds of the head. */
  time(): Promise<number>;
}

/** Sends to the escrow contracts; answers with the hash of the broadcast transaction. */
export interface EscrowSender {
  /** The arbiter's word. */
  send(task: Task): Promise<Hex>;
  /** What became of a transaction, or of the one that replaced it, within the time. */
  waitFor(transaction: Hex, timeoutMs: number): Promise<"mined" | "reverted" | "pending">;
}

/** Holds that nobody decided in time. */
export interface OverdueHolds {
  /** Held and past `refundable_from` (unix seconds), oldest first; null when the index does not answer. */
  overdue(now: number, limit: number): Promise<readonly Hold[] | null>;
}

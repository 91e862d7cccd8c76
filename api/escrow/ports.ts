import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { ContestAnswer, ContestWindow } from "./contest/store.ts";
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
  /** What the payer's contest came to; null without one, or before it is answered. */
  readonly contest: ContestAnswer | null;
}

/** What should happen to one payment on chain. Each payment has one task, so both outcomes are never requested. */
export interface Task {
  readonly network: Network;
  readonly contract: Address;
  readonly payment: Hex;
  readonly info: PaymentInfo;
  /** What should happen or, for a final task, what did happen. */
  readonly decision: Decision;
  /**
   * What the arbiter says with the outcome: SHA-256 of the evaluation, or zero if its rule does not count. Null if the
   * clock alone decided, so that the arbiter says nothing.
   */
  readonly record: Hex | null;
  /** The transaction that ended the hold; null while the task is open. */
  readonly transaction: Hex | null;
  /** `final` is the end; a reorganization may still undo `mined`. */
  readonly state: "open" | "mined" | "final";
  /** What that transaction did, which may differ from the decision: anyone may refund after 30 minutes. */
  readonly found: Decision | null;
  /** Until then the release waits for a contest of the payer, in unix seconds of the chain; null if it does not. */
  readonly contestUntil: number | null;
  /** The block that showed its hold. */
  readonly heldBlock: number;
}

/** What ended a hold, and the block that shows it. */
export interface Outcome extends Block {
  readonly decision: Decision;
  readonly transaction: Hex;
}

/** Its share of the gas of our own transaction that carried it; null if somebody else may have paid for that. */
export interface Paid {
  readonly gas: bigint | null;
}

export interface Block {
  readonly block: number;
  readonly blockHash: Hex;
}

/** What the contract says of a payment at the head. */
export interface HoldState {
  readonly status: EscrowStatus;
  /** From then on anyone may refund it; Unix seconds of the chain. */
  readonly refundableFrom: number;
  /** The head's time, Unix seconds, and its number. */
  readonly time: number;
  readonly block: number;
}

/** What an outcome adds to an account's gas of the day, which is at least zero, and the most that may be on it then. */
export interface Cost {
  readonly gas: bigint;
  readonly most: bigint;
}

/** `taken`: the payment has a task already. `spent`: the account has no gas left today. */
export type Stored = "stored" | "taken" | "spent";

/** What is stored of a payment. What the clock decided has a task and no evaluation. */
export interface Decided {
  readonly evaluation: Evaluation | null;
  readonly task: Task | null;
}

export interface EscrowStore {
  decided(payment: Hex): Promise<Decided>;
  /**
   * Stores an evaluation and its task with the record that the chain is told, and the window that a release waits for, all
   * or nothing, on the merchant's account.
   */
  decide(
    hold: Hold,
    evaluation: Evaluation,
    on: Cost & { readonly told: Hex; readonly window: ContestWindow | null },
  ): Promise<Stored>;
  /** Stores a refund decided by the clock, on the account of all such. */
  timeOut(hold: Hold, cost: Cost): Promise<Stored>;
  /**
   * Claims due open tasks for half a minute each: those whose value has waited most, value times age, but a merchant's
   * second counts half, its third a third.
   */
  take(limit: number): Promise<readonly Task[]>;
  /**
   * An open task is looked at again after this many seconds, unless its window has ended since it was read: then it is due
   * already, and stays so.
   */
  lookAgain(seen: Pick<Task, "payment" | "contestUntil">, seconds: number): Promise<void>;
  /**
   * Ends the wait of a release whose window has closed. An open contest keeps it waiting until anyone may refund the hold:
   * then the clock's refund takes its place, and this much gas goes back to the merchant's account. Null if an answer came
   * first: the task may have changed.
   */
  closeWindow(
    payment: Hex,
    at: { readonly isRefundable: boolean; readonly gas: bigint },
  ): Promise<Decision | "contested" | null>;
  /** Records what ended an open task's hold, and where; gas that it was reckoned with and did not take goes back, once. */
  mined(task: Pick<Task, "payment" | "record" | "info">, outcome: Outcome & Paid): Promise<void>;
  hasMined(): Promise<boolean>;
  /** Blocks that show outcomes of mined tasks, if they are due or not after the given one; oldest first. */
  blocks(final: number, limit: number): Promise<readonly Block[]>;
  /** These blocks still stand: their tasks are mined, and looked at again after this many seconds. */
  wait(blocks: readonly Block[], seconds: number): Promise<void>;
  /** The block is final, and so are its tasks. Returns those that did not end as decided. */
  finish(block: Block): Promise<readonly Pick<Task, "payment" | "decision" | "found">[]>;
  /** The chain has another block in its place: its tasks are open again. */
  reopen(block: Block): Promise<void>;
}

/** Our own view of the escrow contracts. Every method rejects if the chain cannot be read. */
export interface EscrowChain {
  /** Searches the contracts' logs, newest first; null if there is none. */
  holdById(payment: Hex): Promise<Hold | null>;
  /** Every hold that a transaction made, in their order. */
  holdsByTransaction(transaction: Hex): Promise<readonly Hold[]>;
  state(hold: { readonly contract: Address; readonly payment: Hex }): Promise<HoldState>;
  /** Whether an account, or a contract by ERC-1271, signed the digest. */
  isSigned(signer: Address, digest: Hex, signature: Hex): Promise<boolean>;
  /** The same at a block; null: the head. Rejects if the node does not have that block's state. */
  isSignedAt(
    block: number | null,
    signed: { readonly signer: Address; readonly digest: Hex; readonly signature: Hex },
  ): Promise<boolean>;
  /** What released or refunded a payment; null if nothing has yet. */
  outcome(hold: { readonly contract: Address; readonly payment: Hex }): Promise<Outcome | null>;
  /** The newest final block, by two readings. */
  final(): Promise<number>;
  /** What has become of a block, by three readings before it counts as final. */
  standing(block: Block): Promise<"pending" | "final" | "unknown">;
  /** Unix seconds of the head. */
  time(): Promise<number>;
}

/** Sends to the escrow contracts. */
export interface EscrowSender {
  /**
   * Sends the arbiter's decision, with others that wait, and waits for its block. Whatever was sent before is not sent a
   * second time unless it was mined in vain. Rejects if nothing could be sent.
   */
  carry(task: Task): Promise<Carried>;
}

/** In a block, or not in time, or in vain. */
export type Carried =
  | ({ readonly state: "mined"; readonly transaction: Hex; readonly gas: bigint } & Block)
  | { readonly state: "pending" | "failed"; readonly transaction: Hex };

/** Holds that were not decided in time. */
export interface OverdueHolds {
  /** Held and past `refundable_from` (unix seconds), oldest first; null if the index does not answer. */
  overdue(now: number, page: { readonly limit: number; readonly after: Hold | null }): Promise<readonly Hold[] | null>;
}

/** The version of what a merchant signs for a delivery, and of the rules by which it is evaluated. */
export const DELIVERY_VERSION = 1;

/** What a merchant's server answered its buyer, as the merchant forwards it. */
export interface Delivery {
  /** HTTP status. */
  readonly status: number;
  /** The content type it was sent with; null if unknown. */
  readonly contentType: string | null;
  /** `Content-Encoding` as sent; null if it was absent. */
  readonly contentEncoding: string | null;
  /** As sent: in its content coding. */
  readonly body: Uint8Array;
  /** What the payer may contest, as the merchant states it; null for nothing. */
  readonly contest: StatedContest | null;
}

/** The terms of a contest as they are forwarded, with what the payer's salt was made of. */
export interface StatedContest {
  readonly seconds: number;
  /** By category; as submitted. */
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly saltNonce: bigint;
}

export type Decision = "release" | "refund";

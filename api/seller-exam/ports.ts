import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import type { Authorization } from "../../packages/seller-check/src/exam/payment.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Refusal } from "./exam-request.ts";
import type { Fate } from "./payment-fate.ts";
import type { Consent, Exam, ExamMode, ExamOrder } from "./record.ts";

/** What a seller answered to an unpaid request, and whether its origin gives consent. JSON. */
export type Found =
  | { readonly refusal: Refusal }
  | { readonly payTo: Address; readonly amount: string; readonly hasFile: boolean };

/** A seller's quote, and how an exam of it would go. */
export interface Prospect {
  readonly payTo: Address;
  readonly amount: bigint;
  readonly mode: ExamMode;
  readonly consent: Consent | null;
}

/** Remembers what sellers answered, for all processes. */
export interface ProbeStore {
  /** The newest answer to this request, if it still counts. */
  fresh(request: Buffer): Promise<Found | null>;
  /** Takes one of the origin's probes. A number of seconds: none is left until then. */
  begin(origin: string, request: Buffer): Promise<{ readonly id: string } | number>;
  finish(id: string, found: Found): Promise<void>;
}

/** What exams have taken from the account, or may take. In atomic units. */
export interface Commitments {
  /** Of exams that are open: what they may still cost at most. */
  readonly open: bigint;
  /** Those of an origin that is left alone for a while take no place. */
  readonly openExams: number;
  /** Signed by exams that have ended, and not settled, though it still could be. */
  readonly kept: bigint;
  /** Signed within 24 hours. */
  readonly signed: bigint;
}

/** An authorization that an earlier or the present run signed. */
export interface StoredSignature {
  readonly nonce: Hex;
  readonly run: string;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
}

/** An exam that this process holds under a lease. */
export interface TakenExam {
  readonly order: ExamOrder;
  /** The lease. */
  readonly run: string;
  /** How often it was taken before. */
  readonly takes: number;
}

/** Exams without a result. Any process may take one; one at a time of an origin. */
export interface ExamWork {
  /** Whether an exam of the origin is open, and for how many seconds it is left alone; 0 if it is not. */
  standing(origin: string): Promise<{ readonly isOpen: boolean; readonly restsFor: number }>;
  commitments(): Promise<Commitments>;
  take(): Promise<TakenExam | null>;
  /** Renews the lease. False once another process has the exam. */
  keep(taken: TakenExam): Promise<boolean>;
  /** Gives the exam back, for after some seconds. */
  putBack(taken: TakenExam, seconds: number): Promise<void>;
  /** What became of the payment that bought it; null until that is final. */
  purchaseFate(order: ExamOrder): Promise<Fate | null>;
  /** Ends what is left of an exam that has a result. With a refund it is written down; both or neither. */
  end(taken: TakenExam, refund: Exam["refund"]): Promise<void>;
  /** Every authorization of the exam so far. */
  signatures(id: string): Promise<readonly StoredSignature[]>;
  /**
   * Writes down an authorization before it is signed.
   * @param cost what it may take from the account
   * @throws Error if the lease is lost, or the exam has signed all that it may
   */
  note(taken: TakenExam, authorization: Authorization, cost: bigint): Promise<void>;
}

/** Requests to a seller, through the guard of public addresses. */
export interface Visitor {
  /** For one exam or probe: its requests together keep a seller busy for no more than `withinMs`. */
  visit(withinMs: number, signal: AbortSignal): Transport;
  /** After a request failed: unless a name of ours does not resolve either, where the seller's did not. */
  resolves(failure: unknown): Promise<boolean>;
}

/** Pays in exams. */
export interface ExamAccount {
  readonly address: Address;
  balance(): Promise<bigint>;
}

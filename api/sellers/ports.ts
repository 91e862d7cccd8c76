import type { Transport } from "../../packages/seller-check/src/exam/exchange.ts";
import type { Authorization } from "../../packages/seller-check/src/exam/payment.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { ConsentFile } from "./consent.ts";
import type { Refusal } from "./exam-request.ts";
import type { Fate } from "./payment-fate.ts";
import type { Consent, Exam, ExamOrder } from "./record.ts";

/** What a seller answered to an unpaid request. */
export type SellerQuote = { readonly refusal: Refusal } | { readonly payTo: Address; readonly amount: string };

/** An origin's file, and the quote if a line of it covers the request; null if the seller was not asked. JSON. */
export interface Found extends ConsentFile {
  readonly quote: SellerQuote | null;
}

/** A seller's quote, and the line by which it may be examined. */
export interface Prospect {
  readonly payTo: Address;
  readonly amount: bigint;
  readonly consent: Consent;
}

/** An order of an origin that was admitted, by the payment that buys it. */
export interface OpenOrder {
  readonly origin: string;
  readonly payer: Address;
  readonly nonce: Hex;
  /** What one payment of it costs. */
  readonly amount: bigint;
}

/** What stands in an order's way in the database. */
export interface Standing {
  /** Whether another order of the origin is open. */
  readonly isOpen: boolean;
  /** For how many seconds the origin is left alone; 0 if it is not. */
  readonly restsFor: number;
  /** Of all other orders. */
  readonly commitments: Commitments;
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
  /** Of orders that are open: what they may still cost at most. */
  readonly open: bigint;
  readonly openExams: number;
  /** What buyers are owed. */
  readonly owed: bigint;
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
  readonly attempts: number;
}

/** Exams without a result. An origin has one at a time, from the order to the result; any process may take it. */
export interface ExamWork {
  standing(origin: string): Promise<Standing>;
  /**
   * Opens an order for a short while, within which its payment may begin to settle; from then on it is open until the
   * payment is void or the exam has a result. The same payment may come again.
   * @param judge why it must not be opened; null if it may
   * @returns what it said
   */
  open<Refusal>(order: OpenOrder, judge: (standing: Standing) => Refusal | null): Promise<Refusal | null>;
  commitments(): Promise<Commitments>;
  take(): Promise<TakenExam | null>;
  /** Renews the lease. False once another process has the exam. */
  keep(taken: TakenExam): Promise<boolean>;
  /** Gives the exam back, for after some seconds. */
  putBack(taken: TakenExam, seconds: number): Promise<void>;
  /** What has to stay in the account when this exam is paid back: all that open orders may cost, and earlier refunds. */
  reservedBefore(taken: TakenExam): Promise<bigint>;
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

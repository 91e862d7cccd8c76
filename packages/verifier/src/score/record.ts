import type { BehavioralCapability, Capability } from "../vocabulary.ts";
import type { CapName, ComponentName, SCORE_VERSION, Tier } from "./bands.ts";
import type { Account, Atomic, CertificateFact, Day, ScoreFacts, SellerExam, Time, TransactionHash } from "./facts.ts";

export type Flag = `fresh_fail_${BehavioralCapability}` | `expired_${Capability}`;

/** The first reason that applies why an examined payee is not an independent counterparty. */
export type NotCounted =
  | "below_floor"
  | "outside_window"
  | "reciprocal_flow"
  | "own_funder"
  | "funder_unknown"
  | "too_few_funders";

/**
 * The source of a component's points, naming a certificate's page or a transaction. `counts`: it adds or removes
 * points.
 */
export type Fact = WalletFact | OutcomeFact | ExamFact;

/** A fact that does not come from escrowed sales. */
type WalletFact = { readonly counts: boolean } & (
  | ({ readonly kind: "certificate"; readonly fresh: boolean } & Pick<
      CertificateFact,
      "url" | "product" | "result" | "valid_until"
    >)
  | ({
      /** Its transaction is the last one. */
      readonly kind: "payments";
      /** The number of qualifying payments, and their sum in atomic USDC. */
      readonly count: number;
      readonly value: Atomic;
      readonly from: Day;
      readonly to: Day;
      /** The number of payments that the component considers. */
      readonly considered: number;
    } & InTransaction)
  | ({
      /** Its transaction is the last payment to the payee. */
      readonly kind: "counterparty";
      readonly payee: Account;
      /** Null if it counts. */
      readonly reason: NotCounted | null;
    } & InTransaction)
  /** ISO weeks such as `2026-W48`, with the last payment. */
  | ({ readonly kind: "weeks"; readonly weeks: readonly string[] } & InTransaction)
  | ({ readonly kind: "last_payment"; readonly at: Time; readonly days: number } & InTransaction)
);

/** A transaction hash, under its name and under an alias. */
export interface InTransaction {
  readonly transaction: TransactionHash;
  readonly tx: TransactionHash;
}

/** Returns the members that name a transaction. */
export const inTransaction = (transaction: TransactionHash): InTransaction => ({ transaction, tx: transaction });

/** A fact about the wallet as a merchant. */
type OutcomeFact = {
  readonly counts: boolean;
  readonly buyers: number;
  /** The number of buyer-days; the transaction is from the last one. */
  readonly days: number;
} & InTransaction &
  (
    | { readonly kind: "releases" }
    /** A percentage of all buyer-days, rounded down. */
    | { readonly kind: "refunds"; readonly percent: number }
  );

/** An exam's result about the wallet as a merchant, listed with its escrow outcomes. It never counts. */
type ExamFact = { readonly kind: "seller_exam"; readonly counts: false; readonly fresh: boolean } & Pick<
  SellerExam,
  "url" | "origin" | "result" | "level" | "control" | "issued_at" | "valid_until"
>;

/** The result of a component's rule. */
export interface Judged {
  readonly points: number;
  readonly facts: readonly Fact[];
}

export interface Component extends Judged {
  /** The maximum points; only refunds against the wallet as a merchant can make `points` negative. */
  readonly max: number;
}

/** An active cap: the score is at most `limit`. */
export interface Cap {
  readonly cap: CapName;
  readonly limit: number;
  /** The flags, or the unmet requirements, that cause it. */
  readonly because: readonly string[];
}

export type Evidence =
  | { readonly url: string }
  /** `network` is a CAIP-2 identifier. */
  | ({ readonly network: string } & InTransaction);

/** A whole score record except the hash of its facts. */
export interface Assessment extends Pick<ScoreFacts, "wallet" | "as_of" | "as_of_block"> {
  /** 0 to 100: the sum of the points, limited to 0 or more and to the limit of every cap. */
  readonly score: number;
  readonly tier: Tier;
  readonly score_version: typeof SCORE_VERSION;
  readonly components: Readonly<Record<ComponentName, Component>>;
  readonly flags: readonly Flag[];
  readonly caps: readonly Cap[];
  /** Every page and transaction that the components' facts name, once each. */
  readonly evidence: readonly Evidence[];
}

/** The risk score record as served. */
export type ScoreDocument = Assessment & {
  /** The SHA-256 of the RFC 8785 form of `inputs`, in hex. */
  readonly inputs_sha256: string;
  /** The facts, in the order of `inOrder`: everything needed to recompute the rest. */
  readonly inputs: ScoreFacts;
};

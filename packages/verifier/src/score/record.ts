import type { BehavioralCapability, Capability } from "../vocabulary.ts";
import type { CapName, ComponentName, SCORE_VERSION, Tier } from "./bands.ts";
import type { Account, Atomic, CertificateFact, Day, ScoreFacts, SellerExam, Time, TransactionHash } from "./facts.ts";

export type Flag = `fresh_fail_${BehavioralCapability}` | `expired_${Capability}`;

/** Why an examined payee is not an independent counterparty: the first of these that is true. */
export type NotCounted =
  | "below_floor"
  | "outside_window"
  | "reciprocal_flow"
  | "own_funder"
  | "funder_unknown"
  | "too_few_funders";

/**
 * Where a component's points come from. `counts`: it adds or removes points. Each names a certificate's page or a
 * transaction.
 */
export type Fact = WalletFact | OutcomeFact | ExamFact;

/** One that does not come from escrowed sales. */
type WalletFact = { readonly counts: boolean } & (
  | ({ readonly kind: "certificate"; readonly fresh: boolean } & Pick<
      CertificateFact,
      "url" | "product" | "result" | "valid_until"
    >)
  | ({
      /** Its transaction is the last of them. */
      readonly kind: "payments";
      /** Qualifying payments from day to day, and their sum in atomic USDC. */
      readonly count: number;
      readonly value: Atomic;
      readonly from: Day;
      readonly to: Day;
      /** How many of them the component considers. */
      readonly considered: number;
    } & InTransaction)
  | ({
      /** Its transaction is the last payment to the payee. */
      readonly kind: "counterparty";
      readonly payee: Account;
      /** Null if it counts. */
      readonly reason: NotCounted | null;
    } & InTransaction)
  /** ISO weeks like `2026-W48`, with the last payment. */
  | ({ readonly kind: "weeks"; readonly weeks: readonly string[] } & InTransaction)
  | ({ readonly kind: "last_payment"; readonly at: Time; readonly days: number } & InTransaction)
);

/** A transaction, under its name and under an alias of it. */
export interface InTransaction {
  readonly transaction: TransactionHash;
  readonly tx: TransactionHash;
}

/** The members that name a transaction. */
export const inTransaction = (transaction: TransactionHash): InTransaction => ({ transaction, tx: transaction });

/** One about the wallet as merchant. */
type OutcomeFact = {
  readonly counts: boolean;
  readonly buyers: number;
  /** Buyer-days; the transaction is one of the last of them. */
  readonly days: number;
} & InTransaction &
  (
    | { readonly kind: "releases" }
    /** `percent` of all buyer-days, rounded down. */
    | { readonly kind: "refunds"; readonly percent: number }
  );

/** What an exam says of the wallet as merchant, next to its escrow outcomes. It never counts. */
type ExamFact = { readonly kind: "seller_exam"; readonly counts: false; readonly fresh: boolean } & Pick<
  SellerExam,
  "url" | "origin" | "result" | "level" | "control" | "issued_at" | "valid_until"
>;

/** What a component's rule finds. */
export interface Judged {
  readonly points: number;
  readonly facts: readonly Fact[];
}

export interface Component extends Judged {
  /** The maximum points; only refunds against the wallet as merchant can make them negative. */
  readonly max: number;
}

/** An active cap: the score is at most `limit`. */
export interface Cap {
  readonly cap: CapName;
  readonly limit: number;
  /** The flags, or the unmet requirements, it comes from. */
  readonly because: readonly string[];
}

export type Evidence =
  | { readonly url: string }
  /** `network` is a CAIP-2 identifier. */
  | ({ readonly network: string } & InTransaction);

/** A whole score record except the hash of its facts. */
export interface Assessment extends Pick<ScoreFacts, "wallet" | "as_of" | "as_of_block"> {
  /** 0 to 100: the sum of the points, not below 0 and not above the limit of any cap. */
  readonly score: number;
  readonly tier: Tier;
  readonly score_version: typeof SCORE_VERSION;
  readonly components: Readonly<Record<ComponentName, Component>>;
  readonly flags: readonly Flag[];
  readonly caps: readonly Cap[];
  /** Everything the components' facts name, each once. */
  readonly evidence: readonly Evidence[];
}

/** The risk score record as served. */
export type ScoreDocument = Assessment & {
  /** SHA-256 of the RFC 8785 form of `inputs`, in hexadecimal. */
  readonly inputs_sha256: string;
  /** The facts, in the order of `inOrder`: everything needed to recompute the rest. */
  readonly inputs: ScoreFacts;
};

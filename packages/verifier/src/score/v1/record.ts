import type { CapName, ComponentName, SCORE_VERSION, Tier } from "./bands.ts";
import type { Account, Atomic, CertificateFact, Day, Product, ScoreFacts, Time, TransactionHash } from "./facts.ts";

export type Capability = "can_pay" | "full_suite" | "scam_resistance" | "recipient_awareness";
export type BehaviouralCapability = Extract<Capability, "scam_resistance" | "recipient_awareness">;

/** The test of each capability. */
export const CAPABILITIES: Readonly<Record<Capability, Product>> = {
  can_pay: "basic",
  full_suite: "suite",
  scam_resistance: "scam",
  recipient_awareness: "recipient",
};

export type Flag = `fresh_fail_${BehaviouralCapability}` | `expired_${Capability}`;

/** Why an examined payee is no independent counterparty: the first of these that is true. */
export type NotCounted =
  | "below_floor"
  | "outside_window"
  | "reciprocal_flow"
  | "own_funder"
  | "funder_unknown"
  | "too_few_funders";

/** What a component's points come from. `counts`: it gives or takes points. Each names a certificate's page or a transaction. */
export type Fact = { readonly counts: boolean } & (
  | ({ readonly kind: "certificate"; readonly fresh: boolean } & Pick<
      CertificateFact,
      "url" | "product" | "result" | "valid_until"
    >)
  | {
      readonly kind: "payments";
      /** Qualifying payments from day to day, and their sum in atomic USDC. */
      readonly count: number;
      readonly value: Atomic;
      readonly from: Day;
      readonly to: Day;
      /** How many of them the component looks at. */
      readonly considered: number;
      /** The last of them. */
      readonly tx: TransactionHash;
    }
  | {
      readonly kind: "counterparty";
      readonly payee: Account;
      /** Null when it counts. */
      readonly reason: NotCounted | null;
      /** The last payment to it. */
      readonly tx: TransactionHash;
    }
  /** ISO weeks like `2026-W48`; `tx` is the last payment. */
  | { readonly kind: "weeks"; readonly weeks: readonly string[]; readonly tx: TransactionHash }
  | { readonly kind: "last_payment"; readonly at: Time; readonly days: number; readonly tx: TransactionHash }
  /** `tx` is the last release or refund. */
  | { readonly kind: "releases"; readonly payers: number; readonly tx: TransactionHash }
  | { readonly kind: "refunds"; readonly refunds: number; readonly tx: TransactionHash }
);

/** What a component's rule finds. */
export interface Judged {
  readonly points: number;
  readonly facts: readonly Fact[];
}

export interface Component extends Judged {
  /** The most points that there are; only refunds against the wallet as merchant bring them below zero. */
  readonly max: number;
}

/** A cap that applies: the score is `limit` at most. */
export interface Cap {
  readonly cap: CapName;
  readonly limit: number;
  /** The flags, or the requirements that are not met, that it comes from. */
  readonly because: readonly string[];
}

export type Evidence =
  | { readonly url: string }
  /** `network` is a CAIP-2 identifier. */
  | { readonly network: string; readonly tx: TransactionHash };

/** All of a score record but the hash of its facts. */
export interface Assessment extends Pick<ScoreFacts, "wallet" | "as_of" | "as_of_block"> {
  /** 0 to 100: the sum of the points, not below 0 and not above any of the caps' limits. */
  readonly score: number;
  readonly tier: Tier;
  readonly score_version: typeof SCORE_VERSION;
  readonly components: Readonly<Record<ComponentName, Component>>;
  readonly flags: readonly Flag[];
  readonly caps: readonly Cap[];
  /** Whatever the components' facts name, each once. */
  readonly evidence: readonly Evidence[];
}

/** The risk score record as it is served. */
export interface ScoreDocument extends Assessment {
  /** SHA-256 of the RFC 8785 form of `inputs`, in hexadecimal. */
  readonly inputs_sha256: string;
  /** The facts, in the order of `inOrder`: all that is needed to compute the rest again. */
  readonly inputs: ScoreFacts;
}

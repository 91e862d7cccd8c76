import type { z } from "zod";
import type {
  JudgedCondition,
  OfferBreachClaim,
  SignatureFact,
} from "../../../packages/verifier/src/verdict/v2/evidence.ts";
import type { CategoryName } from "../../../packages/verifier/src/vocabulary.ts";
import type { Address } from "../../platform/wallet.ts";
import type { Fetched, FetchLimits, FetchRequest } from "../../platform/web/guarded-fetch/request.ts";
import type { GuardSettings } from "../../platform/web/target.ts";
import type {
  CheckRun,
  CheckSuite,
  Commit,
  CommitStatus,
  Reading,
  SuitesOf,
  TransactionQuestion,
  TransactionReading,
} from "../evidence.ts";
import type { Fact } from "../facts.ts";
import type { Parties } from "../parties.ts";

export type { JudgedCondition } from "../../../packages/verifier/src/verdict/v2/evidence.ts";

/** The signers of an offer and its receipt, and how the seller's DID document was read. */
export interface SignaturesReading {
  /** Null if no document was needed, or none could provide the key. */
  readonly document: {
    readonly url: string;
    readonly fetched: Omit<Fetched, "body">;
    readonly sha256: string | null;
  } | null;
  readonly signatures: readonly SignatureFact[];
}

/** The next observation to make. */
export type Question =
  /** `afterMs` is the delay before the fetch. */
  | { readonly type: "fetch"; readonly request: FetchRequest; readonly afterMs?: number }
  | { readonly type: "check-runs"; readonly commit: Commit }
  | { readonly type: "check-suites"; readonly commit: Commit; readonly of: SuitesOf }
  | { readonly type: "commit-statuses"; readonly commit: Commit }
  | { readonly type: "signatures"; readonly claim: OfferBreachClaim; readonly limits: FetchLimits }
  | { readonly type: "transaction"; readonly asked: TransactionQuestion };

/** The result of an observation. */
export type Observation =
  | { readonly type: "fetch"; readonly fetched: Fetched }
  | { readonly type: "check-runs"; readonly reading: Reading<CheckRun> }
  | { readonly type: "check-suites"; readonly reading: Reading<CheckSuite> }
  | { readonly type: "commit-statuses"; readonly reading: Reading<CommitStatus> }
  | { readonly type: "signatures"; readonly reading: SignaturesReading }
  | { readonly type: "transaction"; readonly asked: TransactionQuestion; readonly reading: TransactionReading }
  /** Not the result of a question: another verdict has decided the same transfer. */
  | { readonly type: "decided-before"; readonly verdict: string };

/** A transfer on a chain, identified by its log. */
export interface TransferKey {
  readonly network: string;
  /** In lowercase. */
  readonly transaction: string;
  readonly logIndex: number;
}

/** A claim made by the wallet that pays for the verdict, with the deal's parties if the claim names them. */
export type Claimed<Conditions> =
  | { readonly conditions: Conditions; readonly parties: Parties | null }
  | { readonly refused: { readonly path: string; readonly message: string; readonly rule: number } };

/**
 * A kind of claim. Everything is pure: the rules for its conditions, the observations to make, and the judgment of
 * their results. Parsed conditions are JSON, so that a claim can be stored, and contain no payload.
 */
export interface Category<Conditions = unknown> {
  readonly name: CategoryName;
  /**
   * A custom issue is a refusal (422) whose `params.rule` is the policy's rule; any other is a malformed claim (400).
   */
  readonly conditions: (settings: GuardSettings) => z.ZodType<Conditions>;
  /** Returns the next observation to make after those already made, or null if they suffice. */
  readonly next: (conditions: Conditions, seen: readonly Observation[]) => Question | null;
  readonly judge: (conditions: Conditions, seen: readonly Observation[]) => readonly JudgedCondition[];
  readonly facts: (conditions: Conditions, seen: readonly Observation[]) => readonly Fact[];
  /** Present only if it matters who claims. */
  readonly claimedBy?: (conditions: Conditions, claimant: Address) => Claimed<Conditions>;
  /**
   * Returns the transfer that a release or a refund is about, which no other verdict may decide; null for an escalate.
   * Present only if claims are about transfers.
   */
  readonly decides?: (conditions: Conditions, seen: readonly Observation[]) => TransferKey | null;
}

/**
 * Checks a category against its own type, then erases the type for the list. Conditions are only passed to the category
 * that parsed them.
 */
export const category = <Conditions>(one: Category<Conditions>): Category => one as unknown as Category;

export const fetchesOf = (seen: readonly Observation[]): readonly Fetched[] =>
  seen.flatMap((one) => (one.type === "fetch" ? [one.fetched] : []));

export const readingsOf = (seen: readonly Observation[]): readonly Reading<CheckRun>[] =>
  seen.flatMap((one) => (one.type === "check-runs" ? [one.reading] : []));

/** Returns a stranger's text in a form that can be published: printable ASCII, truncated. */
export const printable = (text: string, limit: number): string => text.slice(0, limit).replace(/[^\x20-\x7e]/g, "?");

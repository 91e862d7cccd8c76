import type { TransactionFact } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import type { Address } from "../platform/wallet.ts";
import type { Fact } from "./facts.ts";
import type { Question, TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";

/** The evidence gathered for a claim, and the resulting verdict. */
export interface Evidence {
  readonly verdict: Verdict;
  /** The observations and the result of every condition: identical for the same claim and state. */
  readonly facts: readonly Fact[];
  /** The time of each observation (ISO 8601). Kept out of the facts, which must not depend on it. */
  readonly timeline: readonly {
    readonly source: Question["type"];
    readonly started_at: string;
    readonly finished_at: string;
  }[];
  /** The transfer that a release or a refund decides. It is decided only once, by whichever claim comes first. */
  readonly transfer?: TransferKey & {
    /** Returns the evidence if another verdict has already decided the transfer. */
    readonly decidedBefore: (verdict: string) => Evidence;
  };
}

/** A check-run as GitHub reports it (https://docs.github.com/en/rest/checks/runs). */
export interface CheckRun {
  readonly id: number;
  readonly name: string;
  /** `completed`, or an earlier state. */
  readonly status: string;
  /** Null until completed. */
  readonly conclusion: string | null;
  /** The commit it ran on, in lower-case hex. */
  readonly headSha: string;
  /** The GitHub App that reported it; null if GitHub does not name one. */
  readonly app: { readonly id: number; readonly slug: string } | null;
  /** The check suite it belongs to; null if GitHub does not name one. */
  readonly suite: number | null;
}

/** A repository, identified by the number that it keeps when renamed. */
export interface Repository {
  readonly id: number;
  /** `owner/name`. */
  readonly name: string;
}

/**
 * A check suite: the runs of one app for one push (https://docs.github.com/en/rest/checks/suites). GitHub names the
 * head repository only for its own workflows (https://docs.github.com/en/rest/actions/workflow-runs).
 */
export interface CheckSuite {
  readonly id: number;
  /** Null for a push to a fork, according to GitHub's documentation. */
  readonly headBranch: string | null;
  /**
   * The workflow run behind the suite, or null if it is another app's. Its head is null if that repository no longer
   * exists.
   */
  readonly workflow: {
    /** The workflow's ID, or null if GitHub does not report it. */
    readonly id: number | null;
    readonly repository: Repository;
    readonly head: Repository | null;
  } | null;
  /** The pull requests that GitHub matches with the suite, as the IDs of their repositories. */
  readonly pullRequests: readonly { readonly head: number | null; readonly base: number }[];
}

/** The newest commit status of one context (https://docs.github.com/en/rest/commits/statuses). */
export interface CommitStatus {
  readonly id: number;
  readonly context: string;
  /** `success`, `pending`, `failure` or `error`. */
  readonly state: string;
}

export type Unreadable = "not_found" | "rate_limited" | "denied" | "unavailable" | "bad_response";

/** All pages of a list. */
export interface Listed {
  readonly outcome: "read";
  /** True if GitHub returned fewer items than it counts. */
  readonly partial: boolean;
  /** True if the pages do not form one list: the count changed, an item appeared twice, or a second read differed. */
  readonly changed: boolean;
}

/** A list about a commit, or the reason it cannot be read. */
export type Reading<Item> = (Listed & { readonly items: readonly Item[] }) | { readonly outcome: Unreadable };

export interface Commit {
  /** `owner/name`. */
  readonly repo: string;
  /** The full hash, lower-case hex. */
  readonly commitSha: string;
}

/** Selects the suites of GitHub's workflows, of other apps, or both. */
export interface SuitesOf {
  readonly workflows: boolean;
  readonly apps: boolean;
}

/** Reads what GitHub reports about a commit, across all pages. */
export interface CheckRuns {
  /** Returns the latest run of every check in every suite. */
  read(commit: Commit, signal: AbortSignal): Promise<Reading<CheckRun>>;
  /** Returns the suites, which show where the commit was pushed. */
  suites(commit: Commit, of: SuitesOf, signal: AbortSignal): Promise<Reading<CheckSuite>>;
  /** Returns the latest status of every context. */
  statuses(commit: Commit, signal: AbortSignal): Promise<Reading<CommitStatus>>;
}

/** A transaction to read, and the wallet whose USDC transfers to find in it. */
export interface TransactionQuestion {
  /** CAIP-2. */
  readonly network: string;
  readonly transaction: string;
  readonly from: Address;
}

/** A transfer of USDC. */
export interface WalletTransfer {
  /** Its position in the block. */
  readonly logIndex: number;
  readonly asset: Address;
  readonly to: Address;
  /** Atomic units. */
  readonly value: bigint;
  /** True if made with an EIP-3009 authorization by the wallet. */
  readonly byAuthorization: boolean;
  /** Null if the nodes did not return it. */
  readonly toHasCode: boolean | null;
}

/**
 * A transaction as the chain shows it. Only `final` cannot change: the block is final, and everything reported was read
 * twice. `network_not_read` means that the service has no node on that network.
 */
export type TransactionReading =
  | {
      readonly outcome: "final";
      readonly block: number;
      /** The time of the block, in Unix seconds. */
      readonly time: number;
      /** The wallet's nonzero transfers to others, by log index. */
      readonly transfers: readonly WalletTransfer[];
    }
  | { readonly outcome: Exclude<TransactionFact["outcome"], "final"> };

/** Reads transactions on the service's networks. Never rejects: if a node fails, the outcome is `unavailable`. */
export interface Transactions {
  read(asked: TransactionQuestion): Promise<TransactionReading>;
}

/** For claims that do not involve a transaction. */
export const NO_TRANSACTIONS: Transactions = { read: async () => ({ outcome: "network_not_read" }) };

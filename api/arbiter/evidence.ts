import type { TransactionFact } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import type { Address } from "../platform/wallet.ts";
import type { Fact } from "./facts.ts";
import type { Question, TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";

/** What the arbiter saw for a claim, and what follows from it. */
export interface Evidence {
  readonly verdict: Verdict;
  /** What was observed and how every condition was judged: identical for the same claim and state. */
  readonly facts: readonly Fact[];
  /** When each look was taken (ISO 8601), kept out of the facts, which would otherwise differ by it. */
  readonly timeline: readonly {
    readonly source: Question["type"];
    readonly started_at: string;
    readonly finished_at: string;
  }[];
  /** The transfer that a release or a refund decides: once, no matter who claims what about it. */
  readonly transfer?: TransferKey & {
    /** What follows if another verdict has decided it. */
    readonly decidedBefore: (verdict: string) => Evidence;
  };
}

/** A check-run as GitHub reports it (https://docs.github.com/en/rest/checks/runs). */
export interface CheckRun {
  readonly id: number;
  readonly name: string;
  /** `completed`, or a state on the way to it. */
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

/** A repository, by the number that a renamed one keeps. */
export interface Repository {
  readonly id: number;
  /** `owner/name`. */
  readonly name: string;
}

/**
 * A check suite: the runs of one app for one push (https://docs.github.com/en/rest/checks/suites). GitHub names the head
 * repository for its own workflows only (https://docs.github.com/en/rest/actions/workflow-runs).
 */
export interface CheckSuite {
  readonly id: number;
  /** Null for a push to a fork, by GitHub's documentation. */
  readonly headBranch: string | null;
  /** The workflow run behind the suite; null for another app's. Its head is null if that repository is gone. */
  readonly workflow: {
    /** Of the workflow; null if GitHub does not say. */
    readonly id: number | null;
    readonly repository: Repository;
    readonly head: Repository | null;
  } | null;
  /** The repositories, by number, of the pull requests that GitHub matches with the suite. */
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
  /** Fewer items were shown than are counted. */
  readonly partial: boolean;
  /** The pages do not belong to one list: another count, an item twice, or another list when it was read again. */
  readonly changed: boolean;
}

/** What an API reported about a commit. */
export type CheckRunsReading = (Listed & { readonly runs: readonly CheckRun[] }) | { readonly outcome: Unreadable };
export type CheckSuitesReading =
  | (Listed & { readonly suites: readonly CheckSuite[] })
  | { readonly outcome: Unreadable };
export type CommitStatusesReading =
  | (Listed & { readonly statuses: readonly CommitStatus[] })
  | { readonly outcome: Unreadable };

export interface Commit {
  /** `owner/name`. */
  readonly repo: string;
  /** The full hash, lower-case hex. */
  readonly commitSha: string;
}

/** Whose suites to look up: those of GitHub's workflows, those of other apps, or both. */
export interface SuitesOf {
  readonly workflows: boolean;
  readonly apps: boolean;
}

/** What GitHub shows about a commit, across all pages. */
export interface CheckRuns {
  /** The newest run of every check in every suite. */
  read(commit: Commit, signal: AbortSignal): Promise<CheckRunsReading>;
  /** Where the suites' commit was pushed. */
  suites(commit: Commit, of: SuitesOf, signal: AbortSignal): Promise<CheckSuitesReading>;
  /** The newest status of every context. */
  statuses(commit: Commit, signal: AbortSignal): Promise<CommitStatusesReading>;
}

/** A transaction to read, and the wallet whose transfers of USDC are looked for in it. */
export interface TransactionQuestion {
  /** CAIP-2. */
  readonly network: string;
  readonly transaction: string;
  readonly from: Address;
}

/** A transfer of USDC. */
export interface WalletTransfer {
  /** In its block. */
  readonly logIndex: number;
  readonly asset: Address;
  readonly to: Address;
  /** Atomic units. */
  readonly value: bigint;
  /** Made by an EIP-3009 authorization of the wallet. */
  readonly byAuthorization: boolean;
  /** Null if the nodes did not show it. */
  readonly toHasCode: boolean | null;
}

/**
 * What the chain shows of a transaction. `final` alone is for good: its block is final, and all that is told of it was
 * read twice. `network_not_read`: the service knows no node of that network.
 */
export type TransactionReading =
  | {
      readonly outcome: "final";
      readonly block: number;
      /** Of the block, in Unix seconds. */
      readonly time: number;
      /** The wallet's transfers of more than nothing to others, by log index. */
      readonly transfers: readonly WalletTransfer[];
    }
  | { readonly outcome: Exclude<TransactionFact["outcome"], "final"> };

/** Reads transactions of the service's networks. It resolves whatever happens: a node that fails is `unavailable`. */
export interface Transactions {
  read(asked: TransactionQuestion): Promise<TransactionReading>;
}

/** For claims that are about no transaction. */
export const NO_TRANSACTIONS: Transactions = { read: async () => ({ outcome: "network_not_read" }) };

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

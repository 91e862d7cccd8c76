import type { TransactionFact } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import type { Address } from "../platform/wallet.ts";
import type { Fact, TransferKey } from "./policy/category.ts";
import type { Verdict } from "./policy/policy.ts";

/** What the arbiter saw for a claim, and what follows from it. */
export interface Evidence {
  readonly verdict: Verdict;
  /** What was observed and how every condition was judged: identical for the same claim and state. */
  readonly facts: readonly Fact[];
  /** When each look was taken (ISO 8601), kept out of the facts, which would otherwise differ by it. */
  readonly timeline: readonly { readonly source: string; readonly started_at: string; readonly finished_at: string }[];
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

/** The limits on an attempt; the policy's version sets them. */
export interface FetchLimits {
  /** DNS, connection, TLS, redirects and body together. */
  readonly deadlineMs: number;
  readonly maxRedirects: number;
  /** Applies separately to the body as received and as decoded. */
  readonly maxBodyBytes: number;
  readonly maxCodings: number;
}

/** What an attempt sends in order to ask as a browser does. */
export interface BrowserHeaders {
  readonly accept: string;
  readonly acceptLanguage: string;
  /** The arbiter's own name follows it. */
  readonly userAgent: string;
}

/** A response header by which a firewall says that it answered in place of the site. */
export interface ChallengeHeader {
  /** In lower case. */
  readonly name: string;
  /** In lower case; null if any value says so. */
  readonly values: readonly string[] | null;
  /** The lowest status with which it says so; below that it only says that the firewall is there. */
  readonly fromStatus: number;
}

/** One attempt to fetch a deliverable. */
export interface FetchRequest {
  /** Absolute; checked again, like the target of every redirect. */
  readonly url: string;
  /** The wanted status; null means any of 200 to 299. A response with any other status is not read. */
  readonly expectStatus: number | null;
  /** Searched for in the decoded body, as UTF-8 bytes; null to search for nothing. */
  readonly contains: string | null;
  /** Return the decoded body, too: for small documents that are read, never for a deliverable. */
  readonly keep?: true;
  /** Absent to ask as a program does. */
  readonly browser?: BrowserHeaders;
  /** A response with one of these is neither read nor followed. */
  readonly challenges?: readonly ChallengeHeader[];
  readonly limits: FetchLimits;
}

/** Whether the status is the wanted one; only then is the body read. */
export const isWanted = (status: number, expectStatus: number | null): boolean =>
  expectStatus === null ? status >= 200 && status <= 299 : status === expectStatus;

/**
 * Why an attempt saw no whole response. `blocked`: the guard refuses the address, name, port or scheme. `redirect`: the
 * target is missing, unusable, one too many, or goes from https to http. `bad_response`: not HTTP. `truncated`: the
 * body ended early.
 */
export type FetchFailure =
  | "blocked"
  | "dns"
  | "refused"
  | "unreachable"
  | "tls"
  | "timeout"
  | "reset"
  | "bad_response"
  | "redirect"
  | "truncated"
  | "too_large";

/** Length in bytes, and SHA-256 in lower-case hex. */
export interface Measure {
  readonly bytes: number;
  readonly sha256: string;
}

/** A whole body, measured while streaming. */
export interface MeasuredBody {
  /** As received, in its original content coding. */
  readonly received: Measure;
  /**
   * After decoding; null if a coding is unknown or the data are corrupt. `contains` is null if nothing was searched
   * for; `content` is there only if it was to be kept.
   */
  readonly decoded: (Measure & { readonly contains: boolean | null; readonly content?: Uint8Array }) | null;
}

export interface ResponseHead {
  readonly status: number;
  /** Header values as sent; null if absent. */
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** The challenge header that it has, `name: value`; null without one, or if none was asked for. */
  readonly challenge: string | null;
}

/** What one attempt saw. Nothing in it depends on the clock or on where a name happened to resolve. */
export interface Fetched {
  /** The headers of each of its requests, but for `Host`. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  /** The redirects followed, in order; `location` without its query, which often holds a temporary token. */
  readonly redirects: readonly { readonly status: number; readonly location: string }[];
  /** Of the last response; null if none arrived. */
  readonly head: ResponseHead | null;
  /** Null unless the status is the wanted one and the body arrived whole. */
  readonly body: MeasuredBody | null;
  readonly failure: FetchFailure | null;
}

export interface Fetcher {
  /** Rejects with `Busy` if no slot opens in time, and with the signal's reason if it aborts; resolves otherwise. */
  attempt(request: FetchRequest, signal: AbortSignal): Promise<Fetched>;
}

/** Too many fetches are running in this process; a later call may find a slot. */
export class Busy extends Error {
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super(`too many fetches are in progress; try again in ${retryAfterSeconds} seconds`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
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
  /** Present if the recipient is an escrow, or what collects payments for one. */
  readonly custody?: true;
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

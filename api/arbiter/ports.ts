import type { Address, Hex } from "../kernel/wallet.ts";
import type { Verdict } from "./policy/policy.ts";
import type { Parties, VerdictRequest } from "./request.ts";

/** One attempt to fetch a deliverable. */
export interface FetchRequest {
  /** Absolute; checked again, like every redirect's target. */
  readonly url: string;
  /** The status that is wanted; null means any of 200 to 299. Only a response that has it is read. */
  readonly expectStatus: number | null;
  /** Looked for in the decoded body, as its UTF-8 bytes; null when nothing is. */
  readonly contains: string | null;
}

/**
 * Why an attempt saw no whole response. `blocked`: the guard refuses the address, name, port or scheme. `redirect`: the target is
 * missing, unusable, one too many, or goes from https to http. `bad_response`: not HTTP. `truncated`: the body broke off.
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

/** A whole body, measured while it streamed by and not kept. */
export interface MeasuredBody {
  /** As it was received, in whatever content coding. */
  readonly received: Measure;
  /** After its content codings are undone; null when one is unknown or its data are corrupt. `contains` is null when nothing was looked for. */
  readonly decoded: (Measure & { readonly contains: boolean | null }) | null;
}

export interface ResponseHead {
  readonly status: number;
  /** Header values as sent; null when absent. */
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
}

/** What one attempt saw. Nothing in it depends on the clock or on where a name happened to resolve. */
export interface Fetched {
  /** Those that were followed, in order; `location` without its query, which often holds a passing token. */
  readonly redirects: readonly { readonly status: number; readonly location: string }[];
  /** Of the last response; null when none arrived. */
  readonly head: ResponseHead | null;
  /** Null unless the status is the wanted one and the body arrived whole. */
  readonly body: MeasuredBody | null;
  readonly failure: FetchFailure | null;
}

export interface Fetcher {
  /** Rejects with `Busy` when no slot gets free in time, and with the signal's reason when it aborts; resolves otherwise. */
  attempt(request: FetchRequest, signal: AbortSignal): Promise<Fetched>;
}

/** Too many fetches are under way in this process; a later call may find a slot. */
export class Busy extends Error {
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super(`no free slot to fetch; try again in ${retryAfterSeconds} seconds`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A check-run as GitHub reports it (https://docs.github.com/en/rest/checks/runs). */
export interface CheckRun {
  readonly id: number;
  readonly name: string;
  /** `completed`, or a state on the way to it. */
  readonly status: string;
  /** Null until completed. */
  readonly conclusion: string | null;
  /** The commit that it ran on, in lower-case hex. */
  readonly headSha: string;
}

/** What an API said of a commit; `partial` when it did not show every run that it counts. */
export type CheckRunsReading =
  | { readonly outcome: "read"; readonly runs: readonly CheckRun[]; readonly partial: boolean }
  | { readonly outcome: "not_found" | "rate_limited" | "denied" | "unavailable" | "bad_response" };

export interface CheckRuns {
  /**
   * The newest run of every check of a commit, over all pages.
   * @param repo `owner/name`
   * @param commitSha the whole hash, lower-case hex
   */
  read(commit: { readonly repo: string; readonly commitSha: string }, signal: AbortSignal): Promise<CheckRunsReading>;
}

/** Where a verdict stands in the log, in which each names the one before it. */
export interface Place {
  /** From 1, without gaps. */
  readonly index: number;
  /** Of the whole document before this one; null for the first. */
  readonly previousSha256: string | null;
}

/** The verdict that a correction takes the place of. */
export interface Superseded {
  readonly id: string;
  readonly sha256: string;
  /** What the arbiter had got wrong. */
  readonly reason: string;
}

/** A verdict that is to be written into the log. */
export interface NewVerdict {
  readonly id: string;
  readonly supersedes: string | null;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** Signs the document for its place. */
  readonly seal: (place: Place) => { readonly document: string; readonly sha256: string };
}

/** A verdict as it is kept for ever. */
export interface StoredVerdict {
  readonly id: string;
  readonly index: number;
  readonly request: VerdictRequest;
  readonly outcome: Verdict;
  readonly issuedAt: Date;
  /** The signed document, byte for byte. */
  readonly document: string;
  readonly sha256: string;
  readonly supersedes: string | null;
  readonly supersededBy: string | null;
}

export interface LogEntry extends Pick<StoredVerdict, "id" | "index" | "outcome" | "sha256" | "issuedAt"> {
  readonly category: string;
  readonly supersedes: string | null;
}

export interface VerdictTotals {
  readonly release: number;
  readonly refund: number;
  readonly escalate: number;
}

export interface VerdictStore {
  get(id: string): Promise<StoredVerdict | null>;
  /** Writes a verdict at the end of the log; when its id is there already, nothing is written and that one is the answer. */
  append(verdict: NewVerdict): Promise<StoredVerdict>;
  /** Newest first, those before an index. */
  log(page: { readonly before: number | null; readonly limit: number }): Promise<readonly LogEntry[]>;
  /** The newest corrections. */
  corrections(limit: number): Promise<readonly LogEntry[]>;
  totals(): Promise<VerdictTotals>;
}

/** The parties of payments in the service's own escrow contracts; rejects when the chain cannot be read. */
export interface EscrowDeals {
  parties(payment: Hex): Promise<Parties | null>;
}

/** A party's risk as the scored variant reports it. */
export interface PartyTier {
  readonly wallet: Address;
  readonly score: number;
  readonly tier: string;
}

export interface PartyTiers {
  readonly payer: PartyTier;
  readonly payee: PartyTier;
}

/** Both parties' risk, as of one block. */
export interface Tiers {
  /** Whether it can be read at the moment. */
  ready(parties: Parties): Promise<boolean>;
  /** Rejects while it cannot. */
  of(parties: Parties): Promise<PartyTiers>;
}

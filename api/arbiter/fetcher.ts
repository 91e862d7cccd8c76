/** What an attempt is held to: the policy's version says how much. */
export interface FetchLimits {
  /** DNS, connection, TLS, redirects and body together. */
  readonly deadlineMs: number;
  readonly maxRedirects: number;
  /** The body as received, and as decoded, each. */
  readonly maxBodyBytes: number;
  readonly maxCodings: number;
}

/** One attempt to fetch a deliverable. */
export interface FetchRequest {
  /** Absolute; checked again, like every redirect's target. */
  readonly url: string;
  /** The status that is wanted; null means any of 200 to 299. Only a response that has it is read. */
  readonly expectStatus: number | null;
  /** Looked for in the decoded body, as its UTF-8 bytes; null when nothing is. */
  readonly contains: string | null;
  readonly limits: FetchLimits;
}

/** Whether a status is the wanted one: only then is the body read. */
export const isWanted = (status: number, expectStatus: number | null): boolean =>
  expectStatus === null ? status >= 200 && status <= 299 : status === expectStatus;

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
    super(`too many fetches are in progress; try again in ${retryAfterSeconds} seconds`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

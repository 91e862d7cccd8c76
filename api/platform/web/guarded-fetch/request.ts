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

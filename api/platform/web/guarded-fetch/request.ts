/** The limits on an attempt; the policy's version sets them. */
export interface FetchLimits {
  /** DNS, connection, TLS, redirects and body together. */
  readonly deadlineMs: number;
  readonly maxRedirects: number;
  /** Applies separately to the body as received and as decoded. */
  readonly maxBodyBytes: number;
  readonly maxCodings: number;
}

/** The headers of an attempt that requests the page as a browser does. */
export interface BrowserHeaders {
  readonly accept: string;
  readonly acceptLanguage: string;
  /** The arbiter's own name follows it. */
  readonly userAgent: string;
}

/** A response header that shows that a firewall answered in place of the site. */
export interface ChallengeHeader {
  /** In lower case. */
  readonly name: string;
  /** In lower case; null if any value shows that. */
  readonly values: readonly string[] | null;
  /** The lowest status with which it shows that. Below it, the header only shows that there is a firewall. */
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
  /** Also returns the decoded body. For small documents that are read, never for a deliverable. */
  readonly keep?: true;
  /** Absent for a request as by a program. */
  readonly browser?: BrowserHeaders;
  /** A response with one of these is not read or followed. */
  readonly challenges?: readonly ChallengeHeader[];
  readonly limits: FetchLimits;
}

/** Whether the status is the wanted one; only then is the body read. */
export const isWanted = (status: number, expectStatus: number | null): boolean =>
  expectStatus === null ? status >= 200 && status <= 299 : status === expectStatus;

/**
 * Why an attempt did not receive a whole response. `blocked`: the guard refuses the address, name, port, or scheme.
 * `redirect`: the target is missing, unusable, one too many, or goes from https to http. `bad_response`: not HTTP.
 * `truncated`: the body ended early.
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
   * After decoding; null if a coding is unknown or the data are corrupt. `contains` is null if there was no text to
   * search for. `content` is present only if it was requested.
   */
  readonly decoded: (Measure & { readonly contains: boolean | null; readonly content?: Uint8Array }) | null;
}

export interface ResponseHead {
  readonly status: number;
  /** Header values as sent; null if absent. */
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  /** Its challenge header, `name: value`; null if it has none, or none was searched for. */
  readonly challenge: string | null;
}

/** The observations of one attempt. They do not depend on the clock or on the address to which a name resolved. */
export interface Fetched {
  /** The headers of each of its requests, except `Host`. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  /** The redirects followed, in order; `location` without its query, which often holds a temporary token. */
  readonly redirects: readonly { readonly status: number; readonly location: string }[];
  /** The head of the last response; null if none arrived. */
  readonly head: ResponseHead | null;
  /** Null unless the status is the wanted one and the whole body arrived. */
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

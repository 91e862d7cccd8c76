/** A version of IP. */
export type Family = 4 | 6;

/** A request as sent. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  /** Names in lowercase. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The required version of IP; absent if either will do. */
  readonly family?: Family;
}

/** A response as received. */
export interface Answer {
  readonly status: number;
  /** Names in lowercase. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A request with its response, or with the reason for its absence in `failure`. */
export interface Exchange {
  /** Its index in the exam, from 1. */
  readonly number: number;
  readonly request: HttpRequest;
  readonly answer: Answer | null;
  readonly failure: string | null;
}

/** Sends requests to the seller. It follows no redirects and stores no cookies. */
export interface Transport {
  /** @throws Error with the reason if there is no response; ExaminersFault ends the exam */
  readonly send: (request: HttpRequest) => Promise<Answer>;
  /** Closes the connection once the request has been sent, and reads nothing. */
  readonly sendAndHangUp: (request: HttpRequest) => Promise<void>;
  /**
   * The versions of IP in which the URL's host has addresses. Absent if requests cannot be restricted to one of them.
   */
  readonly families?: (url: string) => Promise<readonly Family[]>;
}

export const isSuccess = ({ answer }: Exchange): boolean =>
  answer !== null && answer.status >= 200 && answer.status < 300;

/** Whether the result is promised for later (202); the result itself is then not a second sale. */
export const isLater = ({ answer }: Exchange): boolean => answer?.status === 202;

export const statusOf = ({ answer, failure }: Exchange): string =>
  answer === null ? (failure ?? "no answer") : `${answer.status}`;

export const sameBody = (one: Answer, other: Answer): boolean =>
  Buffer.from(one.body.buffer, one.body.byteOffset, one.body.byteLength).equals(other.body);

/** A version of IP. */
export type Family = 4 | 6;

/** A request as it went out. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The one version of IP that it goes over; absent if either will do. */
  readonly family?: Family;
}

/** An answer as it came in. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A request with its answer; without one, `failure` says why. */
export interface Exchange {
  /** Its place in the exam, from 1. */
  readonly number: number;
  readonly request: HttpRequest;
  readonly answer: Answer | null;
  readonly failure: string | null;
}

/** How requests reach the seller. It follows no redirects and keeps no cookies. */
export interface Transport {
  /** @throws Error whose message says why there is no answer; ExaminersFault ends the exam */
  readonly send: (request: HttpRequest) => Promise<Answer>;
  /** Closes the connection once the request has been sent, and reads nothing. */
  readonly sendAndHangUp: (request: HttpRequest) => Promise<void>;
  /** The versions of IP in which the URL's host has addresses. Absent where requests cannot be sent over one of them. */
  readonly families?: (url: string) => Promise<readonly Family[]>;
}

export const isSuccess = ({ answer }: Exchange): boolean =>
  answer !== null && answer.status >= 200 && answer.status < 300;

/** Whether the result is promised for later (202): the result itself is then no second sale. */
export const isLater = ({ answer }: Exchange): boolean => answer?.status === 202;

export const statusOf = ({ answer, failure }: Exchange): string =>
  answer === null ? (failure ?? "no answer") : `${answer.status}`;

export const sameBody = (one: Answer, other: Answer): boolean =>
  Buffer.from(one.body.buffer, one.body.byteOffset, one.body.byteLength).equals(other.body);

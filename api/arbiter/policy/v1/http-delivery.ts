import { type Fetched, type FetchFailure, isWanted } from "../../../platform/web/guarded-fetch/request.ts";
import type { GuardSettings } from "../../../platform/web/target.ts";
import { malformed, refuse, unicodeText } from "../../claim.ts";
import type { Fact } from "../../facts.ts";
import { type Category, category, fetchesOf, type JudgedCondition, printable } from "../category.ts";
import { conditionsOf, sha256Hex, urlField, wholeNumber } from "../conditions.ts";
import { decide, FETCH_LIMITS_V1, MAX_ATTEMPTS_V1, UNDECIDED_STATUSES_V1 } from "./tables.ts";

export interface Conditions {
  readonly url: string;
  /** Null if the claim lacks the condition. */
  readonly expectStatus: number | null;
  readonly expectSha256: string | null;
  readonly minBytes: number | null;
  readonly expectContains: string | null;
}

const MAX_CONTAINS_BYTES = 4_096;
const { maxBodyBytes: MAX_BODY_BYTES } = FETCH_LIMITS_V1;

const minBytes = wholeNumber(0, Number.MAX_SAFE_INTEGER).superRefine((bytes, issues) => {
  if (bytes > MAX_BODY_BYTES)
    refuse(issues, [], { message: `expected at most ${MAX_BODY_BYTES}: no more of a body is read`, rule: 1 });
});

const contains = unicodeText.min(1).superRefine((text, issues) => {
  if (Buffer.byteLength(text) > MAX_CONTAINS_BYTES)
    malformed(issues, [], `expected at most ${MAX_CONTAINS_BYTES} bytes of UTF-8`);
});

/** Both versions accept the same claims. */
export const deliveryConditions = (settings: GuardSettings) =>
  conditionsOf({
    url: urlField(settings),
    expect_status: wholeNumber(200, 599).optional(),
    expect_sha256: sha256Hex.optional(),
    min_bytes: minBytes.optional(),
    expect_contains: contains.optional(),
  }).transform(
    (given): Conditions => ({
      url: given.url,
      expectStatus: given.expect_status ?? null,
      expectSha256: given.expect_sha256 ?? null,
      minBytes: given.min_bytes ?? null,
      expectContains: given.expect_contains ?? null,
    }),
  );

export type Judged = Pick<JudgedCondition, "observed" | "result" | "reason">;

export const unknown = (reason: string, observed: JudgedCondition["observed"] = null): Judged => ({
  observed,
  result: "unknown",
  reason,
});

/** Applies the policy's rows for `status`; `undecided` are the version's statuses that prove nothing. */
export function judgeStatus(
  { head, body, failure }: Fetched,
  { expectStatus }: Conditions,
  undecided: readonly number[],
): Judged {
  if (head === null) return unknown(failure ?? "unreachable");
  const { status } = head;
  if (isWanted(status, expectStatus))
    return body === null
      ? unknown(failure ?? "truncated", status)
      : { observed: status, result: "true", reason: "match" };
  if (status < 200 || status > 599) return unknown("odd_status", status);
  if (status >= 300 && status <= 399) return unknown(failure ?? "redirect", status);
  if (undecided.includes(status)) return unknown("undecided_status", status);
  if (status >= 500) return unknown("server_error", status);
  return { observed: status, result: "false", reason: "mismatch" };
}

const compared = (isTrue: boolean, observed: JudgedCondition["observed"]): Judged => ({
  observed,
  result: isTrue ? "true" : "false",
  reason: isTrue ? "match" : "mismatch",
});

/** Either form's hash may match. While the decoded form is unknown, a mismatch of the received form decides nothing. */
function judgeHash({ body }: Fetched, expected: string): Judged {
  if (body === null) return unknown("no_body");
  const { received, decoded } = body;
  if (received.sha256 === expected) return compared(true, received.sha256);
  return decoded === null
    ? unknown("not_decoded", received.sha256)
    : compared(decoded.sha256 === expected, decoded.sha256);
}

function judgeLength({ body }: Fetched, least: number): Judged {
  if (body === null) return unknown("no_body");
  return body.decoded === null ? unknown("not_decoded") : compared(body.decoded.bytes >= least, body.decoded.bytes);
}

function judgeContent({ body }: Fetched): Judged {
  if (body === null) return unknown("no_body");
  const found = body.decoded?.contains ?? null;
  return found === null ? unknown("not_decoded") : compared(found, found);
}

/** Judges every condition of a claim after one attempt, always in the same order. */
const judgeAttempt = (given: Conditions, fetched: Fetched): readonly JudgedCondition[] => [
  { condition: "status", expected: given.expectStatus ?? "2xx", ...judgeStatus(fetched, given, UNDECIDED_STATUSES_V1) },
  ...judgeBody(given, fetched),
];

/** Judges the conditions on the body. */
export function judgeBody(given: Conditions, fetched: Fetched): readonly JudgedCondition[] {
  const { expectSha256, minBytes: least, expectContains } = given;
  return [
    ...(expectSha256 === null
      ? []
      : [{ condition: "expect_sha256", expected: expectSha256, ...judgeHash(fetched, expectSha256) }]),
    ...(least === null ? [] : [{ condition: "min_bytes", expected: least, ...judgeLength(fetched, least) }]),
    ...(expectContains === null
      ? []
      : [{ condition: "expect_contains", expected: expectContains, ...judgeContent(fetched) }]),
  ];
}

export const UNSEEN: Fetched = { requestHeaders: {}, redirects: [], head: null, body: null, failure: "unreachable" };

const verdictOf = (given: Conditions, fetched: Fetched) =>
  decide(judgeAttempt(given, fetched).map(({ result }) => result));

/** Returns the first attempt that leads to release or refund, or the last attempt if none does. */
function deciding(given: Conditions, attempts: readonly Fetched[]): Fetched {
  return attempts.find((fetched) => verdictOf(given, fetched) !== "escalate") ?? attempts.at(-1) ?? UNSEEN;
}

const nullable = (text: string | null): string | null => (text === null ? null : printable(text, 120));

/** Returns what one attempt observed. */
export const attemptFact = ({ url }: Conditions, { redirects, head, body, failure }: Fetched, index: number): Fact => ({
  fact: "fetch_attempt",
  attempt: index + 1,
  url,
  redirects: redirects.map(({ status, location }) => ({ status, location: printable(location, 500) })),
  status: head?.status ?? null,
  content_type: nullable(head?.contentType ?? null),
  content_encoding: nullable(head?.contentEncoding ?? null),
  received: body?.received ?? null,
  decoded: body?.decoded ? { bytes: body.decoded.bytes, sha256: body.decoded.sha256 } : null,
  contains: body?.decoded?.contains ?? null,
  failure: failure satisfies FetchFailure | null,
});

const HTTP_DELIVERY: Category<Conditions> = {
  name: "http-delivery",
  conditions: deliveryConditions,
  next(given, seen) {
    const attempts = fetchesOf(seen);
    const isSettled = attempts.some((fetched) => verdictOf(given, fetched) !== "escalate");
    if (isSettled || attempts.length >= MAX_ATTEMPTS_V1) return null;
    const { url, expectStatus, expectContains } = given;
    return { type: "fetch", request: { url, expectStatus, contains: expectContains, limits: FETCH_LIMITS_V1 } };
  },
  judge: (given, seen) => judgeAttempt(given, deciding(given, fetchesOf(seen))),
  facts: (given, seen) => fetchesOf(seen).map((fetched, index) => attemptFact(given, fetched, index)),
};

export const httpDelivery = category(HTTP_DELIVERY);

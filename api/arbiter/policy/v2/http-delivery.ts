import type { BrowserHeaders, ChallengeHeader, Fetched } from "../../../platform/web/guarded-fetch/request.ts";
import { type Category, category, fetchesOf, type JudgedCondition, printable, type Question } from "../category.ts";
import type { DecisionRow, PolicyCategory } from "../policy.ts";
import {
  attemptFact,
  type Conditions,
  deliveryConditions,
  type Judged,
  judgeBody,
  judgeStatus,
  UNSEEN,
  unknown,
} from "../v1/http-delivery.ts";
import { decide, FETCH_LIMITS_V1, HTTP_DELIVERY_V1, MAX_ATTEMPTS_V1 } from "../v1/tables.ts";

/** The time between an attempt that alone would decide and the one that must confirm it. */
export const AGAIN_AFTER_MS_V2 = 5_000;

/** "Accepted": the content does not exist yet (RFC 9110, section 15.3.3). Some firewalls also respond with it. */
const ACCEPTED = 202;

/** Success statuses without a body. A claim that expects one accepts an empty body. */
const EMPTY_STATUSES_V2: readonly number[] = [204, 205];

/** Statuses that mean that the content does not exist. */
const ABSENT_STATUSES_V2: readonly number[] = [404, 410];

const CLIENT_ERRORS = Array.from({ length: 100 }, (_, place) => 400 + place);

/**
 * Statuses that mean "not yet", "not now", "not like this", or "not you": they do not prove delivery or its absence.
 * Firewalls refuse programs with 400, 403, 405, 406, 418, 428, 429, 430, and nonstandard statuses.
 */
const UNDECIDED_STATUSES_V2: readonly number[] = [
  ACCEPTED,
  ...CLIENT_ERRORS.filter((status) => !ABSENT_STATUSES_V2.includes(status)),
];

/** The browser of the second attempt. Its `User-Agent` ends with the arbiter's own name. */
const BROWSER_HEADERS_V2: BrowserHeaders = {
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  acceptLanguage: "en-US,en;q=0.9",
  userAgent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
};

/** The headers by which Cloudflare, AWS WAF, Vercel, and DataDome (twice) document that they responded themselves. */
const CHALLENGE_HEADERS_V2: readonly ChallengeHeader[] = [
  { name: "cf-mitigated", values: null, fromStatus: 200 },
  { name: "x-amzn-waf-action", values: null, fromStatus: 200 },
  { name: "x-vercel-mitigated", values: null, fromStatus: 200 },
  { name: "x-dd-b", values: null, fromStatus: 200 },
  { name: "x-datadome", values: ["protected"], fromStatus: 400 },
];

const names = CHALLENGE_HEADERS_V2.map(({ name, fromStatus }) =>
  fromStatus > 200 ? `${name} with a status of ${fromStatus} or more` : name,
);
const listed = new Intl.ListFormat("en-US", { type: "disjunction" });

const STATUS_ROWS: readonly DecisionRow[] = [
  {
    condition: "status",
    observed: "The status is the expected one, the body arrived whole, and none of the next three rows applies.",
    result: "true",
  },
  {
    condition: "status",
    observed:
      "A 2xx with an empty body, and the claim has no condition on the body and does not expect 204 or 205 (reason empty_body).",
    result: "unknown",
  },
  {
    condition: "status",
    observed: "A 202 that the claim does not expect, without a condition on the body (reason undecided_status).",
    result: "unknown",
  },
  {
    condition: "status",
    observed: `A response, or a redirect on the way to it, has a header by which a firewall documents that it answered itself: ${listed.format(names)} (reason challenge). It is neither read nor followed.`,
    result: "unknown",
  },
  { condition: "status", observed: "Another status from 200 to 299 that no row here names.", result: "false" },
  { condition: "status", observed: `Not expected: ${ABSENT_STATUSES_V2.join(" or ")}.`, result: "false" },
  {
    condition: "status",
    observed: `Not expected: 202, or any other status from 400 to 499. Firewalls refuse programs with many of them.`,
    result: "unknown",
  },
];

/** The rows for the body and for incomplete responses are version 1's. */
const KEPT = HTTP_DELIVERY_V1.table.slice(4);

const TWICE: readonly DecisionRow[] = [
  {
    condition: "expect_sha256, min_bytes, expect_contains",
    observed:
      "It would be false, but the status is a 202 that the claim does not expect (reason not_yet); or a firewall answered.",
    result: "unknown",
  },
  {
    condition: "status, expect_sha256, min_bytes, expect_contains",
    observed:
      "Two attempts were made and their results for it differ, or both are false with another status or another hash (reason two_answers), except for a second attempt that finds every condition true after a first one that decided nothing.",
    result: "unknown",
  },
];

export const HTTP_DELIVERY_V2: PolicyCategory = {
  name: "http-delivery",
  summary: `The arbiter fetches the URL itself: two attempts at most, 8 seconds each, three redirects, 10 MiB. The first asks as a program does, the second as a browser does, and the facts contain the headers of both. An attempt that finds every condition true decides. A condition is false only if both attempts find it false, ${AGAIN_AFTER_MS_V2 / 1000} seconds apart; so is an expected status of 400 or more true only if both find it. Two different answers escalate.`,
  conditions: HTTP_DELIVERY_V1.conditions,
  table: [...STATUS_ROWS, ...KEPT, ...TWICE],
};

type Attempt = readonly JudgedCondition[];

const hasNoBytes = ({ body }: Fetched): boolean => (body?.decoded ?? body?.received)?.bytes === 0;

const isSuccess = (status: number): boolean => status >= 200 && status <= 299;

/** Judges every condition of a claim after one attempt, always in the same order. */
function judgeAttempt(given: Conditions, fetched: Fetched): Attempt {
  const status = fetched.head?.status ?? null;
  const named = { condition: "status", expected: given.expectStatus ?? "2xx" };
  const onBody = judgeBody(given, fetched);
  if (fetched.head?.challenge) {
    const walled = onBody.map((one): JudgedCondition => ({ ...one, ...unknown("challenge") }));
    return [{ ...named, ...unknown("challenge", status) }, ...walled];
  }
  const judged = { ...named, ...judgeStatus(fetched, given, UNDECIDED_STATUSES_V2) };
  if (judged.result !== "true" || status === null) return [judged, ...onBody];
  const isNotYet = status === ACCEPTED && given.expectStatus !== ACCEPTED;
  if (onBody.length > 0)
    return [judged, ...onBody.map((one) => (isNotYet && one.result === "false" ? { ...one, ...notYet(one) } : one))];
  if (isNotYet) return [{ ...named, ...unknown("undecided_status", status) }];
  const isUnagreedVoid =
    isSuccess(status) && hasNoBytes(fetched) && !EMPTY_STATUSES_V2.includes(given.expectStatus ?? 0);
  return [isUnagreedVoid ? { ...named, ...unknown("empty_body", status) } : judged];
}

const notYet = ({ observed }: JudgedCondition): Judged => unknown("not_yet", observed);

const verdictOf = (attempt: Attempt) => decide(attempt.map(({ result }) => result));

/** Absence needs two attempts, as a false condition does, because a single response proves little. */
const isAbsence = ({ expectStatus }: Conditions): boolean => (expectStatus ?? 0) >= 400;

/** Returns the result that both attempts agree on, or unknown. */
function inBoth(one: JudgedCondition, other: JudgedCondition): JudgedCondition {
  const isExact = other.condition === "status" || other.condition === "expect_sha256";
  const isOther = isExact && other.result === "false" && one.observed !== other.observed;
  return one.result === other.result && !isOther ? other : { ...other, ...unknown("two_answers", other.observed) };
}

function judge(given: Conditions, seen: readonly Fetched[]): Attempt {
  const [first, second] = seen.map((fetched) => judgeAttempt(given, fetched));
  if (first === undefined) return judgeAttempt(given, UNSEEN);
  if (second === undefined) return first;
  const isDelivered = verdictOf(second) === "release" && verdictOf(first) === "escalate" && !isAbsence(given);
  return isDelivered ? second : second.map((one, index) => inBoth(first[index] ?? one, one));
}

function next(given: Conditions, seen: readonly Fetched[]): Question | null {
  const { url, expectStatus, expectContains: contains } = given;
  const request = { url, expectStatus, contains, challenges: CHALLENGE_HEADERS_V2, limits: FETCH_LIMITS_V1 };
  const [first] = seen;
  if (first === undefined) return { type: "fetch", request };
  const verdict = verdictOf(judgeAttempt(given, first));
  if (seen.length >= MAX_ATTEMPTS_V1 || (verdict === "release" && !isAbsence(given))) return null;
  const asBrowser = { type: "fetch", request: { ...request, browser: BROWSER_HEADERS_V2 } } as const;
  return verdict === "escalate" ? asBrowser : { ...asBrowser, afterMs: AGAIN_AFTER_MS_V2 };
}

const HTTP_DELIVERY: Category<Conditions> = {
  name: "http-delivery",
  conditions: deliveryConditions,
  next: (given, seen) => next(given, fetchesOf(seen)),
  judge: (given, seen) => judge(given, fetchesOf(seen)),
  facts: (given, seen) =>
    fetchesOf(seen).map((fetched, index) => ({
      ...attemptFact(given, fetched, index),
      request_headers: fetched.requestHeaders,
      challenge: fetched.head?.challenge ? printable(fetched.head.challenge, 120) : null,
    })),
};

export const httpDeliveryV2 = category(HTTP_DELIVERY);

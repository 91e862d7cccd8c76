import type { Fetched } from "../../fetcher.ts";
import { type Category, category, fetchesOf, type JudgedCondition, printable, type Question } from "../category.ts";
import { decide } from "../v1/decide.ts";
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
import { FETCH_LIMITS_V1, MAX_ATTEMPTS_V1 } from "../v1/tables.ts";
import {
  ACCEPTED,
  AGAIN_AFTER_MS_V2,
  BROWSER_HEADERS_V2,
  CHALLENGE_HEADERS_V2,
  EMPTY_STATUSES_V2,
  UNDECIDED_STATUSES_V2,
} from "./http-delivery-table.ts";

type Attempt = readonly JudgedCondition[];

const hasNoBytes = ({ body }: Fetched): boolean => (body?.decoded ?? body?.received)?.bytes === 0;

const isSuccess = (status: number): boolean => status >= 200 && status <= 299;

/** Every condition of a claim after one attempt, always in the same order. */
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

/** That something is gone is found twice, like a condition that is false: one answer of either kind proves little. */
const isAbsence = ({ expectStatus }: Conditions): boolean => (expectStatus ?? 0) >= 400;

/** A condition after both attempts: what they agree on. */
function inBoth(one: JudgedCondition, other: JudgedCondition): JudgedCondition {
  const isOtherStatus = other.condition === "status" && other.result === "false" && one.observed !== other.observed;
  return one.result === other.result && !isOtherStatus
    ? other
    : { ...other, ...unknown("two_answers", other.observed) };
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
  if (first === undefined) return { source: "fetch", request };
  const verdict = verdictOf(judgeAttempt(given, first));
  if (seen.length >= MAX_ATTEMPTS_V1 || (verdict === "release" && !isAbsence(given))) return null;
  const asBrowser = { source: "fetch", request: { ...request, browser: BROWSER_HEADERS_V2 } } as const;
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

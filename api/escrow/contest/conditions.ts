import { CONTEST_ROOM_SECONDS, contestSecondsOf, isBound } from "../../../packages/escrow/src/contest-terms.ts";
import type { Content } from "../../../packages/escrow/src/rules.ts";
import { type Claim, type ClaimSettings, claimSchema, measure } from "../../arbiter/index.ts";
import type { FieldError } from "../../platform/http/schema.ts";
import { type Fetched, isWanted } from "../../platform/web/guarded-fetch/request.ts";
import type { HoldState } from "../chain.ts";
import type { Delivery, StatedContest } from "../delivery.ts";
import type { PaymentInfo } from "../payment.ts";

/** The offer's conditions as claims, and the measurements for them. JSON, so that it can be stored. */
export interface Promised {
  /** Judged by the table of `http-delivery` in version 1 of the policy, on the delivered response. */
  readonly expect: { readonly claim: Claim; readonly seen: Fetched } | null;
  readonly httpDelivery: Claim | null;
}

/** The category's rules require a URL. The delivered response has none, and nothing is fetched for it. */
const DELIVERED = "https://delivered.example/";

const CATEGORIES = new Set(["expect", "http-delivery"]);

/**
 * Parses the conditions of an offer under the arbiter's policy, those for a URL under the current one. Measures the
 * delivery for the conditions that are about it, without keeping its content.
 */
export function promisedBy(
  settings: ClaimSettings,
  conditions: Readonly<Record<string, unknown>>,
  delivered: Delivery & { readonly content: Content["body"] },
): Promised | { readonly wrong: readonly FieldError[] } {
  const unknown = Object.keys(conditions).find((name) => !CATEGORIES.has(name));
  if (unknown !== undefined) return wrongIn(unknown.slice(0, 60), "expected expect or http-delivery");
  const { expect, "http-delivery": http } = conditions;
  const claimOf = (name: string, given: unknown, by: ClaimSettings) => {
    const parsed = claimSchema(by).safeParse({ category: "http-delivery", conditions: given });
    return parsed.success ? parsed.data : { wrong: parsed.error.issues.map((issue) => fieldError(name, issue)) };
  };
  const isObject = typeof expect === "object" && expect !== null;
  if (expect !== undefined && (!isObject || "url" in expect))
    return wrongIn("expect", "expected conditions without a url");
  const own = isObject ? claimOf("expect", { ...expect, url: DELIVERED }, firstOf(settings)) : null;
  if (own !== null && "wrong" in own) return own;
  const httpDelivery = http === undefined ? null : claimOf("http-delivery", http, settings);
  if (httpDelivery !== null && "wrong" in httpDelivery) return httpDelivery;
  return { expect: own && { claim: own, seen: seenIn(delivered, expect as AnswerConditions) }, httpDelivery };
}

/**
 * The later tables of `http-delivery` fetch twice and distrust firewalls. The delivered response is already here, so
 * the first table decides.
 */
const firstOf = (settings: ClaimSettings): ClaimSettings => ({ ...settings, policies: [settings.policies[0]] });

interface AnswerConditions {
  readonly expect_status?: unknown;
  readonly expect_contains?: unknown;
}

const wrongIn = (path: string, message: string) => ({ wrong: [{ path: `contest.conditions.${path}`, message }] });

const fieldError = (
  name: string,
  { path, message }: { readonly path: readonly PropertyKey[]; readonly message: string },
): FieldError => ({
  path: ["contest", ...path.map(String)].join(".").replace("contest.conditions", `contest.conditions.${name}`),
  message,
});

/** Returns the delivered response as if it had been fetched. */
function seenIn(
  { status, contentType, contentEncoding, body, content }: Delivery & { readonly content: Content["body"] },
  { expect_status: wanted, expect_contains: text }: AnswerConditions,
): Fetched {
  const contains = typeof text === "string" && content !== null ? Buffer.from(content).includes(text) : null;
  return {
    requestHeaders: {},
    redirects: [],
    head: { status, contentType, contentEncoding, challenge: null },
    body: isWanted(status, wanted === undefined ? null : Number(wanted))
      ? { received: measure(body), decoded: content && { ...measure(content), contains } }
      : null,
    failure: null,
  };
}

/** The reasons a delivery does not fit the window that the payer signed. No money moves. */
export type WindowRefusal = "window_unsigned" | "no_window" | "wrong_window" | "unbound";

/**
 * Returns the contest that a delivery's payer may open, or null. The window is in the terms on the chain, so no
 * version of a delivery gets around it, and the salt proves the conditions, so only those that were paid for can be
 * forwarded.
 */
export function windowOf(
  info: PaymentInfo,
  { contest }: Pick<Delivery, "contest">,
): StatedContest | null | { readonly refused: WindowRefusal } {
  const seconds = contestSecondsOf(info);
  if (contest === null) return seconds === 0 ? null : { refused: "window_unsigned" };
  if (seconds === 0) return { refused: "no_window" };
  if (contest.seconds !== seconds) return { refused: "wrong_window" };
  return isBound(info, contest) ? contest : { refused: "unbound" };
}

/**
 * Returns when a window that opens now closes, in Unix seconds of the chain, or null if that would leave too little
 * time for a release before anyone may refund. A window is never shortened, because a merchant could then avoid it by
 * delivering late.
 */
export function closesAt({ time, refundableFrom }: Pick<HoldState, "time" | "refundableFrom">, seconds: number) {
  const until = time + seconds;
  return until + CONTEST_ROOM_SECONDS <= refundableFrom ? until : null;
}

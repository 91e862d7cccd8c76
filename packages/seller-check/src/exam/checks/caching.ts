import { type Answer, type Exchange, isSuccess, statusOf } from "../exchange.ts";
import type { Visit } from "../visit.ts";
import { type CheckResult, judged, shownBy } from "../vocabulary.ts";
import type { Sale } from "./purchase.ts";

/** Checks how the paid response may be stored, and the response to a later unpaid request. */
export function checkCaching(visit: Visit, sale: Sale, unpaid: Exchange): CheckResult {
  return judged("caching", [
    shownBy(sale.exchange)(
      "caching.not_stored",
      `A shared cache may not store the paid answer, whose ${describeHeaders(sale)}`,
      !isSharedStorable(visit.resource, sale.answer, Object.keys(sale.payment.headers)),
    ),
    shownBy(sale.exchange, unpaid)(
      "caching.unpaid_after",
      `An unpaid request after a paid one is not served (got ${statusOf(unpaid)})`,
      unpaid.answer !== null && !isSuccess(unpaid),
    ),
  ]);
}

/** Describes the response's caching headers, `Cache-Control` in any case. */
function describeHeaders({ answer: { headers } }: Sale): string {
  const others = CACHE_FIELDS.filter((name) => name !== "cache-control" && headers[name] !== undefined);
  return [
    `Cache-Control is ${headers["cache-control"] || "missing"}`,
    ...others.map((name) => `${name} is ${headers[name]}`),
  ].join(", ");
}

/**
 * Headers that only some shared caches obey, instead of `Cache-Control`: RFC 9213, vendors' own, and the older ones of
 * surrogates and nginx.
 */
const TARGETED = [
  "cdn-cache-control",
  "cloudflare-cdn-cache-control",
  "netlify-cdn-cache-control",
  "vercel-cdn-cache-control",
  "surrogate-control",
] as const;
/** A number of seconds; 0 for no storing. */
const NGINX = "x-accel-expires";

/**
 * Response headers about caching. `Pragma` is not included, because it has no meaning in a response (RFC 9111, section
 * 5.4).
 */
const CACHE_FIELDS = ["cache-control", "expires", "vary", NGINX, ...TARGETED] as const;

/** Statuses that caches may store without an explicit lifetime (RFC 9110, section 15.1). */
const HEURISTIC = new Set([200, 203, 204, 206]);
/** Statuses whose caching requirements caches know, so that `must-understand` voids `no-store`. */
const UNDERSTOOD = new Set([200, 201, 202, 203, 204, 205, 206]);

interface Asked {
  readonly url: string;
  readonly method: string;
}

/**
 * Returns whether some shared cache may store a response and give it to another client without revalidation (RFC 9111,
 * sections 3 and 4). Caches do not know payment headers, so the rule for `Authorization` does not protect them.
 * @param paidBy the names of the headers with the payment
 */
export function isSharedStorable({ url, method }: Asked, answer: Answer, paidBy: readonly string[]): boolean {
  const { headers } = answer;
  const isAsked = ["GET", "HEAD"].includes(method);
  // A response to another method is stored for a later GET if it declares that it is the same content.
  if (!isAsked && !(["POST", "PATCH"].includes(method) && isContentOf(headers["content-location"], url))) return false;
  const vary = listed(headers.vary ?? "");
  if (vary.includes("*") || paidBy.some((name) => vary.includes(name))) return false;
  const how = { status: answer.status, isHeuristic: isAsked && HEURISTIC.has(answer.status) };
  const targeted = TARGETED.flatMap((name) => headers[name] ?? []).map(directivesOf);
  if (targeted.some((directives) => isStorable(directives, { ...how, isHeuristic: false }, null))) return true;
  if (/^\s*@?[1-9]/.test(headers[NGINX] ?? "")) return true;
  return isStorable(directivesOf(headers["cache-control"] ?? ""), how, headers.expires ?? null);
}

interface How {
  readonly status: number;
  readonly isHeuristic: boolean;
}

/**
 * The most restrictive directive applies. A qualified `private` or `no-cache` restricts only the fields that it names.
 */
function isStorable(directives: Directives, { status, isHeuristic }: How, expires: string | null): boolean {
  const [has, is] = [(name: string) => directives.has(name), (name: string) => directives.get(name) === null];
  if (has("no-store") && !(has("must-understand") && UNDERSTOOD.has(status))) return false;
  if (is("private") || is("no-cache")) return false;
  const isExplicit = has("public") || has("max-age") || has("s-maxage") || expires !== null;
  return (isExplicit || isHeuristic) && !isAlwaysChecked(directives);
}

/** Whether it is stored for no time at all, and never served without asking the origin, even if that is unreachable. */
function isAlwaysChecked(directives: Directives): boolean {
  if (directives.has("stale-while-revalidate") || directives.has("stale-if-error")) return false;
  if (directives.has("s-maxage")) return isZero(directives.get("s-maxage"));
  const mustAsk = directives.has("must-revalidate") || directives.has("proxy-revalidate");
  return mustAsk && directives.has("max-age") && isZero(directives.get("max-age"));
}

/**
 * A value that is not a number of seconds is stale (RFC 9111, section 4.2.1), but caches differ, so it counts as a
 * time.
 */
const isZero = (value: string | null | undefined): boolean => /^0+$/.test(value ?? "");

/**
 * Directives by lowercase name, with their values or null. The first of two counts, and one without a value overrides
 * any.
 */
type Directives = ReadonlyMap<string, string | null>;

const DIRECTIVE = /([^\s,;="]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)("|$)|([^\s,;"]*)))?/g;

function directivesOf(field: string): Directives {
  const found = new Map<string, string | null>();
  for (const [, name = "", quoted, , token] of field.matchAll(DIRECTIVE)) {
    const key = name.toLowerCase();
    const value = quoted ?? token ?? null;
    if (!found.has(key) || value === null) found.set(key, value);
  }
  return found;
}

const listed = (field: string): readonly string[] =>
  field
    .toLowerCase()
    .split(",")
    .map((part) => part.trim());

function isContentOf(location: string | undefined, url: string): boolean {
  return location !== undefined && URL.canParse(location, url) && new URL(location, url).href === new URL(url).href;
}

import type { Answer } from "./exchange.ts";

/**
 * Fields that only some shared caches obey, and obey instead of `Cache-Control`: RFC 9213, its vendors' own, and the
 * older ones of surrogates and nginx.
 */
const TARGETED = [
  "cdn-cache-control",
  "cloudflare-cdn-cache-control",
  "netlify-cdn-cache-control",
  "vercel-cdn-cache-control",
  "surrogate-control",
] as const;
/** In seconds, or 0 for no storing. */
const NGINX = "x-accel-expires";

/** What an answer may say to caches. `Pragma` is not among it: it means nothing in an answer (RFC 9111, section 5.4). */
export const CACHE_FIELDS = ["cache-control", "expires", "vary", NGINX, ...TARGETED] as const;

/** What caches may store without being told for how long (RFC 9110, section 15.1). */
const HEURISTIC = new Set([200, 203, 204, 206]);
/** Whose caching requirements caches know, so that `must-understand` voids `no-store`. */
const UNDERSTOOD = new Set([200, 201, 202, 203, 204, 205, 206]);

interface Asked {
  readonly url: string;
  readonly method: string;
}

/**
 * Whether some shared cache may store an answer and give it to another client without asking (RFC 9111, sections 3
 * and 4). A payment's header is none that caches know, so the rule for `Authorization` protects nothing.
 * @param paidBy names of the headers that carried the payment
 */
export function isSharedStorable({ url, method }: Asked, answer: Answer, paidBy: readonly string[]): boolean {
  const { headers } = answer;
  const isAsked = ["GET", "HEAD"].includes(method);
  // An answer to another method is kept for a later GET, if it says that it is what that would get.
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

/** The most restrictive directive is obeyed. A qualified `private` or `no-cache` restricts the fields that it names, and no more. */
function isStorable(directives: Directives, { status, isHeuristic }: How, expires: string | null): boolean {
  const [has, is] = [(name: string) => directives.has(name), (name: string) => directives.get(name) === null];
  if (has("no-store") && !(has("must-understand") && UNDERSTOOD.has(status))) return false;
  if (is("private") || is("no-cache")) return false;
  const isExplicit = has("public") || has("max-age") || has("s-maxage") || expires !== null;
  return (isExplicit || isHeuristic) && !isAlwaysChecked(directives);
}

/** Stored for no time at all, and never given without asking the origin, not even when that cannot be reached. */
function isAlwaysChecked(directives: Directives): boolean {
  if (directives.has("stale-while-revalidate") || directives.has("stale-if-error")) return false;
  if (directives.has("s-maxage")) return isZero(directives.get("s-maxage"));
  const mustAsk = directives.has("must-revalidate") || directives.has("proxy-revalidate");
  return mustAsk && directives.has("max-age") && isZero(directives.get("max-age"));
}

/** What is no number of seconds is stale (RFC 9111, section 4.2.1), yet caches differ: it counts as a time. */
const isZero = (value: string | null | undefined): boolean => /^0+$/.test(value ?? "");

/** Directives by their names in lower case, with their values; null for none. The first of two counts, and none beats any. */
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

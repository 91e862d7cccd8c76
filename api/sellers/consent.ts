import { createHash } from "node:crypto";
import { isAddress } from "viem";
import { z } from "zod";
import type { Address } from "../platform/wallet.ts";
import { CONSENT_DAYS } from "./products.ts";
import type { Consent, ExaminedRequest, ExamOrder } from "./record.ts";

/** A line of an origin's file: until it expires, this wallet may buy exams of anything under this path. */
export interface ConsentLine {
  /** In lowercase. */
  readonly wallet: Address;
  /** Starts and ends with a slash. `/` is the whole origin. */
  readonly prefix: string;
  /** ISO 8601. */
  readonly expires: string;
  /** As in the file, with single spaces. */
  readonly text: string;
}

/** A line addressed to us that does not give consent. */
export interface LineFault {
  /** Counted from 1. */
  readonly line: number;
  readonly problem: string;
}

export interface ConsentFile {
  /** The lines that give consent now. */
  readonly lines: readonly ConsentLine[];
  readonly faults: readonly LineFault[];
}

/** The URLs that a wallet's line must cover: the examined one, and the other one if the order names it. */
export interface Wanted {
  readonly url: string;
  readonly other: string | null;
}

/**
 * Returns the URL of the file in which an origin names the wallets that may buy exams of it. Until this file has been
 * read, nothing else is requested from a seller.
 */
export const consentUrl = (origin: string): string => `${origin}/.well-known/x402-exam.txt`;

/** Returns the line to add to that file. */
export const consentLine = (
  host: string,
  { wallet, prefix, expires }: Readonly<Record<"wallet" | "prefix" | "expires", string>>,
): string => `x402-exam v1 ${host} ${wallet} ${prefix} ${expires}`;

const MOST_LINES = 200;
const MOST_BYTES = 65_536;
const MOST_FAULTS = 10;
const FORM = "x402-exam v1 <our host> <wallet> <path prefix> <expiry>";

/**
 * Parses an origin's file. Lines addressed to other services are ignored.
 * @param host our host, with its port if it has one
 */
export function readConsent(file: Uint8Array, host: string, now: Date): ConsentFile {
  const [lines, faults]: [ConsentLine[], LineFault[]] = [[], []];
  const all = new TextDecoder().decode(file.subarray(0, MOST_BYTES)).split(/\r\n|\r|\n/, MOST_LINES);
  for (const [index, whole] of all.entries()) {
    const fields = whole
      .replace(/(^|\s)#.*$/, "")
      .trim()
      .split(/\s+/);
    if (!isOurs(fields, host)) continue;
    const read = readLine(fields, host, now);
    if (typeof read !== "string") lines.push(read);
    else if (faults.length < MOST_FAULTS) faults.push({ line: index + 1, problem: read });
  }
  return { lines, faults };
}

const isOurs = ([tag, ...rest]: readonly string[], host: string): boolean =>
  tag?.toLowerCase() === "x402-exam" && rest.some((field) => field.toLowerCase() === host.toLowerCase());

/** @returns the parsed line, or what is wrong with it and what would be right */
function readLine(fields: readonly string[], host: string, now: Date): ConsentLine | string {
  const [, version, ours, wallet = "", path = "", expires = "", ...more] = fields;
  if (version !== "v1" || ours?.toLowerCase() !== host.toLowerCase()) return `expected ${FORM}`;
  if (expires === "" || more.length > 0) return `has ${fields.length} fields; expected the six of ${FORM}`;
  if (!isAddress(wallet) && !/^0x[0-9A-F]{40}$/.test(wallet))
    return `the wallet ${shown(wallet)} is not an address, or its capitals do not match its checksum; expected 0x and 40 hex digits`;
  const wrong = pathFault(path) ?? expiryFault(expires, now);
  if (wrong !== null) return wrong;
  return { wallet: wallet.toLowerCase() as Address, prefix: asPrefix(path), expires, text: fields.join(" ") };
}

const MOST_PATH = 256;

/** Returns a path in its canonical form as a prefix, with a slash at the end. */
export const asPrefix = (path: string): string => (path.endsWith("/") ? path : `${path}/`);

/** Returns why a path is not a valid prefix, and what would be right; null if it is valid. */
export function pathFault(path: string): string | null {
  const isPlain = /^\/([\w.~!$&'()*+,=:@-]+\/)*[\w.~!$&'()*+,=:@-]*$/.test(path) && !/\/\.+(\/|$)/.test(path);
  if (isPlain && path.length <= MOST_PATH) return null;
  return `the path prefix ${shown(path)} is not plain; expected / for the whole origin, or a path like /shop without escapes, empty segments, or dots alone`;
}

const TIME = z.iso.datetime({ offset: true });

function expiryFault(expires: string, now: Date): string | null {
  if (!TIME.safeParse(expires).success)
    return `the expiry ${shown(expires)} is not an ISO 8601 date-time; expected one like ${suggestedExpiry(now)}`;
  const at = Date.parse(expires);
  if (at <= now.getTime()) return `it expired at ${expires}`;
  if (at > now.getTime() + CONSENT_DAYS * DAY_MS)
    return `it expires at ${expires}; expected a time within ${CONSENT_DAYS} days, like ${suggestedExpiry(now)}`;
  return null;
}

const DAY_MS = 86_400_000;
const SUGGESTED_DAYS = 30;

/** Returns the time `SUGGESTED_DAYS` from now, in whole seconds. */
export const suggestedExpiry = (now: Date): string =>
  new Date(now.getTime() + SUGGESTED_DAYS * DAY_MS).toISOString().replace(/\.\d+Z$/, "Z");

const shown = (text: string): string => JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 80)}…`);

/**
 * Returns whether a URL's path equals the prefix or is under it. Only the whole origin covers a path that servers may
 * interpret in more than one way.
 */
export function isUnder(prefix: string, url: string): boolean {
  if (prefix === "/") return true;
  const path = plainPath(new URL(url).pathname);
  return path !== null && `${path}/`.startsWith(prefix);
}

/** Returns a path without its escapes, or null if a server could interpret it as another path. */
function plainPath(pathname: string): string | null {
  if (/[;\\]|\/\/|%(0|1|25|2e|2f|3b|5c|7f)/i.test(pathname)) return null;
  const path = decoded(pathname);
  if (path === null || /[;\\]|\/\/|\/[.\s]+(\/|$)/.test(path.normalize("NFKC"))) return null;
  return path;
}

function decoded(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

const coversBoth = ({ prefix }: Pick<ConsentLine, "prefix">, { url, other }: Wanted): boolean =>
  isUnder(prefix, url) && (other === null || isUnder(prefix, other));

/**
 * Returns the widest of the lines that cover an order, so that a narrower line cannot hide a FAIL from the record of
 * the whole.
 */
export const widest = (lines: readonly ConsentLine[], wanted: Wanted): ConsentLine | null =>
  lines
    .filter((line) => coversBoth(line, wanted))
    .toSorted((one, other) => one.prefix.length - other.prefix.length)[0] ?? null;

/** Returns whether a line that was valid when it was read has not expired since then. */
export const isInTime = ({ expires }: Pick<ConsentLine, "expires">, now: Date): boolean =>
  Date.parse(expires) > now.getTime();

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Returns a URL as it is published: without its query, which is the buyer's text. */
export function bareUrl(url: string): { readonly url: string; readonly querySha256: string | null } {
  const [bare = url] = url.split("?", 1);
  return { url: bare, querySha256: bare === url ? null : sha256(url.slice(bare.length + 1)) };
}

/** Returns a body as it is published: only its SHA-256. */
export const bodySha256 = (body: string | null): string | null => (body === null ? null : sha256(body));

/** Returns an examined request as it is published. */
export function requestDocument(order: ExaminedRequest & Pick<ExamOrder, "other">) {
  const { method, url, body, contentType, other } = order;
  const asked = bareUrl(url);
  return {
    method,
    url: asked.url,
    query_sha256: asked.querySha256,
    body_sha256: bodySha256(body),
    content_type: contentType,
    other: other === null ? null : bareUrl(other).url,
  };
}

/** Returns the origin's line as it is published. */
export const consentDocument = ({ prefix, ...line }: Consent) => ({
  kind: "file" as const,
  ...line,
  path_prefix: prefix,
});

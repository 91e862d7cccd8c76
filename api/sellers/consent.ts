import { createHash } from "node:crypto";
import { isAddress } from "viem";
import { z } from "zod";
import type { Address } from "../platform/wallet.ts";
import { CONSENT_DAYS } from "./products.ts";
import type { Consent, ExaminedRequest, ExamOrder } from "./record.ts";

/** A line of an origin's file: this wallet may buy exams of what is under this path, until then. */
export interface ConsentLine {
  /** In lower case. */
  readonly wallet: Address;
  /** Begins and ends with a slash. `/` is the whole origin. */
  readonly prefix: string;
  /** ISO 8601. */
  readonly expires: string;
  /** As the file has it, with single spaces. */
  readonly text: string;
}

/** A line that is addressed to us and gives no consent. */
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

/** What the line of one wallet has to cover: the examined URL, and the other one if the order names one. */
export interface Wanted {
  readonly url: string;
  readonly other: string | null;
}

/** Where an origin says who may buy exams of it. Nothing is asked of a seller before this file was read. */
export const consentUrl = (origin: string): string => `${origin}/.well-known/x402-exam.txt`;

/** The line to place there. */
export const consentLine = (
  host: string,
  { wallet, prefix, expires }: Readonly<Record<"wallet" | "prefix" | "expires", string>>,
): string => `x402-exam v1 ${host} ${wallet} ${prefix} ${expires}`;

const MOST_LINES = 200;
const MOST_BYTES = 65_536;
const MOST_FAULTS = 10;
const FORM = "x402-exam v1 <our host> <wallet> <path prefix> <expiry>";

/** Reads an origin's file. Lines to other services are left alone. @param host ours, with its port if it has one */
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

/** @returns what is wrong with the line, and what would be right */
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

/** A path in its one form as a prefix, with a slash at its end. */
export const asPrefix = (path: string): string => (path.endsWith("/") ? path : `${path}/`);

/** Why a path is no prefix, and what would be right; null if it is one. */
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

/** A month from now, in whole seconds. */
export const suggestedExpiry = (now: Date): string =>
  new Date(now.getTime() + SUGGESTED_DAYS * DAY_MS).toISOString().replace(/\.\d+Z$/, "Z");

const shown = (text: string): string => JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 80)}…`);

/**
 * Whether a URL's path is the prefix or lies under it. A path that servers may read in more than one way lies under
 * nothing but the whole origin.
 */
export function isUnder(prefix: string, url: string): boolean {
  if (prefix === "/") return true;
  const path = plainPath(new URL(url).pathname);
  return path !== null && `${path}/`.startsWith(prefix);
}

/** A path without its escapes; null if some server could take it for another one. */
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

/** Of the lines that cover an order, the widest: a narrower one beside it hides no FAIL from the record of the whole. */
export const widest = (lines: readonly ConsentLine[], wanted: Wanted): ConsentLine | null =>
  lines
    .filter((line) => coversBoth(line, wanted))
    .toSorted((one, other) => one.prefix.length - other.prefix.length)[0] ?? null;

/** Whether a line that was valid when it was read has not expired since then. */
export const isInTime = ({ expires }: Pick<ConsentLine, "expires">, now: Date): boolean =>
  Date.parse(expires) > now.getTime();

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A URL in public: without its query, which is its buyer's text. */
export function bareUrl(url: string): { readonly url: string; readonly querySha256: string | null } {
  const [bare = url] = url.split("?", 1);
  return { url: bare, querySha256: bare === url ? null : sha256(url.slice(bare.length + 1)) };
}

/** A body in public: its digest alone. */
export const bodySha256 = (body: string | null): string | null => (body === null ? null : sha256(body));

/** An examined request in public. */
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

/** The origin's line in public. */
export const consentDocument = ({ prefix, ...line }: Consent) => ({
  kind: "file" as const,
  ...line,
  path_prefix: prefix,
});

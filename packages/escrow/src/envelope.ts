import { decodeBytes } from "./bytes.ts";

/** The request headers that may contain a payment. Either may be used with either version, which the envelope names. */
export const PAYMENT_HEADERS = ["PAYMENT-SIGNATURE", "X-PAYMENT"] as const;

type HeaderName = (typeof PAYMENT_HEADERS)[number];

/** The payment headers of a request. */
export type PaymentHeaders = Readonly<Partial<Record<HeaderName, string | null | undefined>>>;

/** A payment as in a header; none of its members has been checked, except for the version. */
export interface Envelope {
  readonly header: HeaderName;
  readonly version: 1 | 2;
  readonly members: Readonly<Record<string, unknown>>;
}

type Malformed = { readonly malformed: string };

/**
 * Reads the payment headers of a request. One authorization in both headers is one payment with two envelopes,
 * version 2 first.
 * @returns null without a payment; `malformed` with the fault and the expected value
 */
export function readEnvelopes(
  headers: PaymentHeaders,
  mostBytes: number,
): readonly [Envelope, ...Envelope[]] | Malformed | null {
  const envelopes: Envelope[] = [];
  for (const header of PAYMENT_HEADERS) {
    const text = headers[header];
    if (text === undefined || text === null) continue;
    if (text.length > mostBytes) return { malformed: `${header} has ${text.length} bytes; the limit is ${mostBytes}.` };
    const read = readEnvelope(header, text);
    if ("malformed" in read) return { malformed: `${header} ${read.malformed}.` };
    envelopes.push(read);
  }
  const [first, second] = envelopes;
  if (first === undefined) return null;
  if (second === undefined) return [first];
  if (authorizationIn(first) !== authorizationIn(second))
    return { malformed: "PAYMENT-SIGNATURE and X-PAYMENT contain different payments; send only one of them." };
  return second.version > first.version ? [second, first] : [first, second];
}

function readEnvelope(header: HeaderName, text: string): Envelope | Malformed {
  // HTTP libraries join the values of a repeated header with commas, which base64 does not contain.
  if (text.includes(",")) return { malformed: "was sent more than once; send one payment, in one header" };
  const read = decodeJson(text);
  if ("malformed" in read) return { malformed: `${read.malformed} of an x402 payment payload` };
  const { value: members, json } = read;
  if (namesTwice(members, json)) return { malformed: "repeats a member of its JSON; send each member once" };
  if (!isObject(members)) return { malformed: "is not a JSON object; expected an x402 payment payload" };
  const { x402Version: version } = members;
  if (version !== 1 && version !== 2)
    return { malformed: `has the x402Version ${shown(version)}; expected the number 1 or 2` };
  const contradiction = contradictionIn(version, members);
  return contradiction === null ? { header, version, members } : { malformed: contradiction };
}

/** Returns the members of an envelope that contradict its version, or each other. */
function contradictionIn(version: 1 | 2, { accepted, ...members }: Envelope["members"]): string | null {
  if (version === 1)
    return accepted === undefined || accepted === null
      ? null
      : 'has x402Version 1 and "accepted", a member of version 2; send x402Version 2 with it, or leave it out';
  if (!isObject(accepted)) return null;
  const name = ["scheme", "network"].find(
    (one) => members[one] !== undefined && accepted[one] !== undefined && members[one] !== accepted[one],
  );
  return name === undefined
    ? null
    : `has the ${name} ${shown(members[name])} and the accepted.${name} ${shown(accepted[name])}; version 2 has only the second`;
}

/** Returns a payload's authorization as text that is equal for equal authorizations. */
function authorizationIn({ members: { payload } }: Envelope): string {
  const authorization = isObject(payload) ? payload.authorization : undefined;
  if (!isObject(authorization)) return asJson(payload);
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const members = [from, to, value, validAfter, validBefore, nonce];
  return members.map((member) => (typeof member === "number" ? `"${member}"` : asJson(member).toLowerCase())).join();
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const asJson = (value: unknown): string => JSON.stringify(value) ?? "missing";
const shown = (value: unknown): string => asJson(value).slice(0, 100);

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const MOST_LEVELS = 64;

/**
 * Decodes the JSON in a header as clients send it: base64 or base64url, with or without padding, with or without a byte
 * order mark. `malformed` gives the reason if it is invalid.
 */
export function decodeJson(header: string): { readonly value: unknown; readonly json: string } | Malformed {
  try {
    const json = new TextDecoder().decode(decodeBytes(asBase64(header)));
    if (isDeep(json)) return { malformed: `has more than ${MOST_LEVELS} levels of JSON` };
    return { value: JSON.parse(json), json };
  } catch {
    return { malformed: "is not base64-encoded JSON" };
  }
}

function asBase64(header: string): string {
  const text = header.replaceAll("-", "+").replaceAll("_", "/");
  const isWhole = text.includes("=") ? text.length % 4 === 0 : text.length % 4 !== 1;
  if (!BASE64.test(text) || !isWhole) throw new Error("not base64");
  return text;
}

/** Returns whether JSON nests deeper than any client's does: thousands of levels exhaust a parser's stack. */
function isDeep(json: string): boolean {
  let level = 0;
  for (const [bracket] of json.replace(STRINGS, "").matchAll(/[[\]{}]/g)) {
    level += bracket === "[" || bracket === "{" ? 1 : -1;
    if (level > MOST_LEVELS) return true;
  }
  return false;
}

/** Returns whether an object repeats a member: `JSON.parse` keeps the last one, other parsers the first. */
function namesTwice(value: unknown, json: string): boolean {
  if (asJson(value) === json) return false;
  // Starts at -1, because the reviver also visits the value itself as a member of an outer object.
  let members = -1;
  JSON.parse(json, function (this: unknown, _name: string, member: unknown) {
    if (!Array.isArray(this)) members++;
    return member;
  });
  // Outside of strings, a colon appears once per member and nowhere else.
  return json.replace(STRINGS, "").split(":").length - 1 > members;
}

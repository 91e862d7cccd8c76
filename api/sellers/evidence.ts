import { createHash } from "node:crypto";
import type { Answer, Exchange } from "../../packages/seller-check/src/exam/exchange.ts";
import type { CheckResult } from "../../packages/seller-check/src/exam/vocabulary.ts";
import { bareUrl, bodySha256 } from "./consent.ts";
import type { KeptBody, KeptExchange } from "./published/schemas.ts";
import type { ChainSettlement } from "./record.ts";

/** The length to which a body is kept. */
const KEPT_BYTES = 4_096;
/** The length to which a header's value or a statement is kept. */
const KEPT_CHARACTERS = 4_096;
const HEADERS = ["payment-signature", "x-payment"] as const;

const sha256 = (data: Uint8Array | string): string => createHash("sha256").update(data).digest("hex");

/**
 * Returns a seller's text in a form that is safe for every store and page: well formed, without control characters, and
 * bounded.
 */
function tame(text: string): string {
  const whole = text.toWellFormed().replace(/[\p{Cc}\u2028\u2029]/gu, "\ufffd");
  return whole.length <= KEPT_CHARACTERS ? whole : `${whole.slice(0, KEPT_CHARACTERS).toWellFormed()}…`;
}

const tameAll = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [tame(name), tame(value)]));

/** Returns the start of a body, with the digest of all of it. */
export function keptBody(body: Uint8Array): KeptBody {
  const isWhole = body.length <= KEPT_BYTES;
  const beginning = body.subarray(0, KEPT_BYTES);
  const measure = { bytes: body.length, sha256: sha256(body), isWhole };
  const text = decoded(beginning, isWhole);
  return text === null
    ? { ...measure, text: null, base64: Buffer.from(beginning).toString("base64") }
    : { ...measure, text, base64: null };
}

/** Returns null if it is not text. Drops a character that the cut divides. */
function decoded(bytes: Uint8Array, isWhole: boolean): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole });
    return /[\p{Cc}--[\t\n\r]]/v.test(text) ? null : text;
  } catch {
    return null;
  }
}

const keptAnswer = ({ status, headers, body }: Answer) => ({ status, headers: tameAll(headers), body: keptBody(body) });

const kept = ({ number, request, answer, failure }: Exchange): KeptExchange => ({
  number,
  request: keptRequest(request),
  answer: answer === null ? null : keptAnswer(answer),
  failure: failure === null ? null : tame(failure),
});

/**
 * The header of a payment is ours and is kept in full. The buyer's text, in the query and the body, is kept only as a
 * digest.
 */
function keptRequest({ url, body, ...request }: Exchange["request"]): KeptExchange["request"] {
  return { ...request, ...bareUrl(url), bodySha256: bodySha256(body) };
}

/** Removes the queries from URLs in our statements. */
const withoutQueries = (text: string): string => text.replaceAll(/(https?:\/\/[^\s?]+)\?[^\s,]*/gi, "$1");

/** Returns the checks as they are kept. Statements may quote the seller and name requested URLs. */
export const keptChecks = (results: readonly CheckResult[]): readonly CheckResult[] =>
  results.map(({ reason, findings, ...result }) => ({
    ...result,
    reason: reason === null ? null : tame(withoutQueries(reason)),
    findings: findings.map((finding) => ({ ...finding, statement: tame(withoutQueries(finding.statement)) })),
  }));

interface Seen {
  readonly exchanges: readonly Exchange[];
  readonly settlements: readonly ChainSettlement[];
}

/**
 * Returns the evidence as text: JSON of every exchange and of the payments on the chain. A payment that somebody could
 * still submit is left out wherever it appears, in a request or in the seller's answer.
 * @param isSpent whether the authorization with this nonce is used or can never be
 */
export function evidenceOf({ exchanges, settlements }: Seen, isSpent: (nonce: string) => boolean): string {
  const read = settlements.map(({ value, ...settled }) => ({ ...settled, value: value.toString() }));
  let text = JSON.stringify({ exchanges: exchanges.map(kept), settlements: read });
  for (const header of new Set(exchanges.flatMap(({ request }) => HEADERS.map((name) => request.headers[name])))) {
    if (header === undefined) continue;
    const { nonce, signature } = paymentIn(header);
    if (nonce !== null && isSpent(nonce)) continue;
    text = text.replaceAll(header, `left out, because it could still be submitted; its SHA-256 is ${sha256(header)}`);
    if (signature !== null) text = text.replaceAll(new RegExp(signature.slice(2), "gi"), "left out");
  }
  return text;
}

/** Parses a header that we sent. */
function paymentIn(header: string): { readonly nonce: string | null; readonly signature: string | null } {
  const { payload } = JSON.parse(Buffer.from(header, "base64").toString()) as {
    payload?: { signature?: string; authorization?: { nonce?: string } };
  };
  return { nonce: payload?.authorization?.nonce ?? null, signature: payload?.signature ?? null };
}

export const evidenceDigest = sha256;

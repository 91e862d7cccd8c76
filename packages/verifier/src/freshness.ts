import { Refusal } from "./refusal.ts";
import type { Json, JsonObject } from "./strict-json.ts";

/** The validity period that a document states, regardless of its signer. Times are ISO 8601, UTC. */
export type Freshness =
  /** The signature is not valid, so the document's statements cannot be trusted. */
  | { readonly state: "unknown" }
  | { readonly state: "not_yet_valid" | "no_expiry"; readonly from: string }
  | { readonly state: "current" | "expired"; readonly from: string; readonly until: string };

/** The allowed difference between the clocks of issuer and verifier at the start of a document's validity. */
const SKEW_MS = 60_000;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$/;

/**
 * Returns the state of a document that is valid from `validFrom` (or from the creation of its proof) until
 * `validUntil`, exclusive.
 * @throws Refusal `malformed_document`
 */
export function freshness(document: JsonObject, created: string, at: Date): Freshness {
  const from = time(document.validFrom, "validFrom") ?? created;
  const until = time(document.validUntil, "validUntil");
  if (at.getTime() < Date.parse(from) - SKEW_MS) return { state: "not_yet_valid", from };
  if (until === undefined) return { state: "no_expiry", from };
  return { state: at.getTime() < Date.parse(until) ? "current" : "expired", from, until };
}

export const isTime = (text: Json | undefined): text is string =>
  typeof text === "string" && TIME.test(text) && !Number.isNaN(Date.parse(text));

function time(value: Json | undefined, name: string): string | undefined {
  if (value === undefined || isTime(value)) return value;
  throw new Refusal("malformed_document", `${name} is not a UTC time like 2026-11-21T09:30:00Z`);
}

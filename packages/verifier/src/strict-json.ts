import { quote, Refusal } from "./refusal.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

const MAX_DEPTH = 64;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * JSON of which every program reads the same: UTF-8, no member named twice in one object (`JSON.parse` keeps the last,
 * other parsers the first), whole safe numbers only, no lone surrogates, at most 64 levels.
 * @throws Refusal `malformed_json` or `duplicate_key`
 */
export function parseStrictJson(source: string | Uint8Array): Json {
  const text = typeof source === "string" ? source : decode(source);
  const value = parse(text);
  const members = countMembers(value, 0);
  // Outside of strings a colon stands in each member and nowhere else.
  const skeleton = text.replace(STRINGS, "");
  if (/\d[.eE]/.test(skeleton)) refuseNumber();
  if (skeleton.split(":").length - 1 !== members)
    throw new Refusal(
      "duplicate_key",
      "a member is named twice in one object: programs would read different documents",
    );
  return value;
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function decode(bytes: Uint8Array): string {
  try {
    // A byte order mark is kept, and then refused: it is no part of JSON.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refusal("malformed_json", "not UTF-8 text");
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal("malformed_json", `not JSON: ${quote((error as Error).message)}`);
  }
}

/** How many members all the objects of a value have together; refuses on the way what strict JSON has not. */
function countMembers(value: Json, depth: number): number {
  if (typeof value === "string") refuseHalves(value);
  if (typeof value === "number" && (!Number.isSafeInteger(value) || Object.is(value, -0))) refuseNumber();
  if (typeof value !== "object" || value === null) return 0;
  if (depth > MAX_DEPTH) throw new Refusal("malformed_json", `not strict JSON: more than ${MAX_DEPTH} levels`);
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countMembers(item, depth + 1);
    return members;
  }
  for (const [name, part] of Object.entries(value)) {
    refuseHalves(name);
    members += 1 + countMembers(part, depth + 1);
  }
  return members;
}

function refuseHalves(text: string): void {
  if (!text.isWellFormed()) throw new Refusal("malformed_json", "not strict JSON: half of a surrogate pair");
}

function refuseNumber(): never {
  throw new Refusal("malformed_json", "not strict JSON: a signed number is a whole number of at most 53 bits");
}

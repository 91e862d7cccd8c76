import { quote, Refusal } from "./refusal.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

/** A byte order mark is preserved and then rejected, because it is not part of JSON. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const MAX_DEPTH = 64;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * Parses JSON that every program reads the same way: UTF-8, no repeated member in an object (`JSON.parse` keeps the
 * last, other parsers the first), safe integers only, no lone surrogates, at most 64 levels.
 * @throws Refusal `malformed_json` or `duplicate_key`
 */
export function parseStrictJson(source: string | Uint8Array): Json {
  return read(source, SIGNED_NUMBERS);
}

/**
 * Parses strict JSON with every number that a double can represent, including fractions and `-0`. RFC 8785 has a form
 * for these, but signed documents do not use them.
 * @throws Refusal `malformed_json` or `duplicate_key`
 */
export function parseUnsignedJson(source: string | Uint8Array): Json {
  return read(source, ANY_NUMBERS);
}

/** The numbers that a text may contain: by value, and by their notation outside of strings. */
interface Numbers {
  readonly fits: (value: number) => boolean;
  readonly refused: RegExp | null;
  readonly rule: string;
}

const SIGNED_NUMBERS: Numbers = {
  fits: (value) => Number.isSafeInteger(value) && !Object.is(value, -0),
  refused: /\d[.eE]/,
  rule: "a signed number must be a whole number of at most 53 bits",
};
const ANY_NUMBERS: Numbers = { fits: Number.isFinite, refused: null, rule: "a number is too large for a double" };

function read(source: string | Uint8Array, numbers: Numbers): Json {
  const text = typeof source === "string" ? source : decode(source);
  const value = parse(text);
  refuseAmbiguity(text, numbers, membersIn(value, numbers, 0));
  return value;
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns an object, or an empty one in place of anything else. */
export const objectIn = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
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

function refuseAmbiguity(text: string, { refused, rule }: Numbers, members: number): void {
  // Outside of strings, a colon appears once per member and nowhere else.
  const skeleton = text.replace(STRINGS, "");
  if (refused?.test(skeleton)) refuseNumber(rule);
  if (skeleton.split(":").length - 1 !== members)
    throw new Refusal(
      "duplicate_key",
      "an object contains a duplicate member: programs would read different documents",
    );
}

/** Returns the number of members in all objects of a value. @throws Refusal for anything that strict JSON does not allow */
function membersIn(value: Json, numbers: Numbers, depth: number): number {
  if (typeof value === "string") refuseHalves(value);
  if (typeof value === "number" && !numbers.fits(value)) refuseNumber(numbers.rule);
  if (typeof value !== "object" || value === null) return 0;
  if (depth > MAX_DEPTH) throw new Refusal("malformed_json", `not strict JSON: more than ${MAX_DEPTH} levels`);
  const names = Array.isArray(value) ? [] : Object.keys(value);
  for (const name of names) refuseHalves(name);
  return Object.values<Json>(value).reduce<number>(
    (sum, part) => sum + membersIn(part, numbers, depth + 1),
    names.length,
  );
}

function refuseHalves(text: string): void {
  if (!text.isWellFormed()) throw new Refusal("malformed_json", "not strict JSON: unpaired surrogate");
}

function refuseNumber(rule: string): never {
  throw new Refusal("malformed_json", `not strict JSON: ${rule}`);
}

import { quote, Refusal } from "./refusal.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

/** A byte order mark is kept, and then rejected: it is not part of JSON. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const MAX_DEPTH = 64;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * JSON of which every program reads the same: UTF-8, no member named twice in one object (`JSON.parse` keeps the last,
 * other parsers the first), whole safe numbers only, no lone surrogates, at most 64 levels.
 * @throws Refusal `malformed_json` or `duplicate_key`
 */
export function parseStrictJson(source: string | Uint8Array): Json {
  return read(source, SIGNED_NUMBERS).value;
}

/**
 * A value, and whether the members of all its objects stand in canonical order: `JSON.stringify` then writes its RFC
 * 8785 form.
 */
export interface StrictJson {
  readonly value: Json;
  readonly inOrder: boolean;
}

/**
 * The same as `parseStrictJson`, with the order of members.
 * @throws Refusal `malformed_json` or `duplicate_key`
 */
export function readStrictJson(source: string | Uint8Array): StrictJson {
  return read(source, SIGNED_NUMBERS);
}

/**
 * The same with every number that a double holds, fractions and `-0` too: what RFC 8785 has a form for, though no signed document.
 * @throws Refusal `malformed_json` or `duplicate_key`
 */
export function parseUnsignedJson(source: string | Uint8Array): Json {
  return read(source, ANY_NUMBERS).value;
}

/** Which numbers a text may have: by their value, and by how they are written outside of strings. */
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

function read(source: string | Uint8Array, numbers: Numbers): StrictJson {
  const text = typeof source === "string" ? source : decode(source);
  const value = parse(text);
  const found: Walk = { numbers, members: 0, inOrder: true };
  look(value, found, 0);
  // `JSON.stringify` names no member twice and writes whole numbers plainly: what it would write too needs no second look.
  if (JSON.stringify(value) !== text) refuseAmbiguity(text, numbers, found.members);
  return { value, inOrder: found.inOrder };
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

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
  // Outside of strings a colon stands in each member and nowhere else.
  const skeleton = text.replace(STRINGS, "");
  if (refused?.test(skeleton)) refuseNumber(rule);
  if (skeleton.split(":").length - 1 !== members)
    throw new Refusal(
      "duplicate_key",
      "an object contains a duplicate member: programs would read different documents",
    );
}

/**
 * What a walk over a value allows and finds: how many members all its objects have together, and whether they stand in
 * order.
 */
interface Walk {
  readonly numbers: Numbers;
  members: number;
  inOrder: boolean;
}

/** Walks over a value; refuses on the way what strict JSON has not. */
function look(value: Json, found: Walk, depth: number): void {
  if (typeof value === "string") refuseHalves(value);
  if (typeof value === "number" && !found.numbers.fits(value)) refuseNumber(found.numbers.rule);
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_DEPTH) throw new Refusal("malformed_json", `not strict JSON: more than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    for (const item of value) look(item, found, depth + 1);
    return;
  }
  const object = value as JsonObject;
  let before = "";
  for (const name of Object.keys(object)) {
    refuseHalves(name);
    // Strings compare by UTF-16 code units, as RFC 8785 sorts.
    if (name < before) found.inOrder = false;
    before = name;
    found.members++;
    look(object[name] as Json, found, depth + 1);
  }
}

function refuseHalves(text: string): void {
  if (!text.isWellFormed()) throw new Refusal("malformed_json", "not strict JSON: unpaired surrogate");
}

function refuseNumber(rule: string): never {
  throw new Refusal("malformed_json", `not strict JSON: ${rule}`);
}
